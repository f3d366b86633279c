// SPDX-License-Identifier: Apache-2.0
// Java 11 and later, by jdk.jshell in this process. The channel is descriptor 3 (code_frame.h).
//
// An interrupt stops a thread of the code wherever it is, in sync() too: an acknowledgement that nobody waits for is
// passed over, and nothing but "S" is sent below the code.
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;

class OsbxDriver {
	static final int RESULT_MAX = 2 << 20;
	static final int TEXT_MAX = 64 << 10;
	static final int TRACE_MAX = 100;
	static final String[] IMPORTS = { "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*",
		"java.util.concurrent.*", "java.util.function.*", "java.util.regex.*", "java.util.stream.*" };

	static FileInputStream in;
	static FileOutputStream out;
	static byte[] received = new byte[0];
	static Stream last;
	static volatile boolean running;
	static volatile boolean stopped;
	static JShell shell;
	static int count;

	static class Stream extends OutputStream {
		final FileOutputStream to;

		Stream(FileDescriptor fd) {
			to = new FileOutputStream(fd);
		}

		public void write(int b) throws IOException {
			write(new byte[] { (byte) b }, 0, 1);
		}

		public void write(byte[] b, int off, int n) throws IOException {
			turn(this);
			to.write(b, off, n);
		}
	}

	// What has been written is read before what is written to the other stream.
	static synchronized void turn(Stream s) throws IOException {
		if (running && last != s) {
			if (last != null) {
				send("S", "");
				receive('A');
			}
			last = s;
		}
	}

	static FileDescriptor channel() throws Exception {
		FileDescriptor fd = new FileDescriptor();
		Field number = FileDescriptor.class.getDeclaredField("fd");
		number.setAccessible(true);
		number.setInt(fd, 3);
		return fd;
	}

	static void send(String kind, String payload) throws IOException {
		byte[] data = payload.getBytes(StandardCharsets.UTF_8);
		byte[] head = (kind + " " + data.length + "\n").getBytes(StandardCharsets.US_ASCII);
		byte[] all = Arrays.copyOf(head, head.length + data.length);
		System.arraycopy(data, 0, all, head.length, data.length);
		out.write(all);
	}

	static String receive(char wanted) throws IOException {
		byte[] piece = new byte[1 << 16];
		while (true) {
			int end = 0;
			while (end < received.length && received[end] != '\n') {
				end++;
			}
			if (end < received.length) {
				int n = Integer.parseInt(new String(received, 2, end - 2, StandardCharsets.US_ASCII));
				if (received.length > end + n) {
					char kind = (char) received[0];
					String payload = new String(received, end + 1, n, StandardCharsets.UTF_8);
					received = Arrays.copyOfRange(received, end + 1 + n, received.length);
					if (kind == wanted) {
						return payload;
					}
					continue;
				}
			}
			int n = in.read(piece);
			if (n <= 0) {
				Runtime.getRuntime().halt(0);
			}
			byte[] more = Arrays.copyOf(received, received.length + n);
			System.arraycopy(piece, 0, more, received.length, n);
			received = more;
		}
	}

	static String quote(String text) {
		StringBuilder s = new StringBuilder("\"");
		for (int i = 0; i < text.length(); i++) {
			char c = text.charAt(i);
			if (c == '"' || c == '\\') {
				s.append('\\').append(c);
			} else if (c == 0) {
				s.append("\\ufffd");
			} else if (c < 32) {
				s.append(String.format("\\u%04x", (int) c));
			} else {
				s.append(c);
			}
		}
		return s.append('"').toString();
	}

	static String cut(String text, int most) {
		return text.length() <= most ? text : text.substring(0, most) + "\n... (" + (text.length() - most) + " characters more)";
	}

	static void tell(String kind, String json) throws IOException {
		send("S", "");
		send(kind, json);
	}

	static void error(String name, String value, List<String> trace) throws IOException {
		StringBuilder lines = new StringBuilder();
		for (String line : trace) {
			lines.append(lines.length() == 0 ? "" : ",").append(quote(line));
		}
		tell("E", "{\"ename\":" + quote(name) + ",\"evalue\":" + quote(cut(value, TEXT_MAX)) + ",\"traceback\":[" + lines + "]}");
	}

	static void thrown(JShellException e) throws IOException {
		List<String> trace = new ArrayList<>();
		String value = String.valueOf(e.getMessage());
		for (Throwable t = e; t != null && trace.size() < TRACE_MAX; t = t.getCause()) {
			String name = t instanceof EvalException ? ((EvalException) t).getExceptionClassName() : t.getClass().getName();
			String text = name + (t.getMessage() == null ? "" : ": " + cut(t.getMessage(), TEXT_MAX));
			if (t == e) {
				value = text;
			}
			trace.add((t == e ? "" : "Caused by: ") + text);
			for (StackTraceElement at : t.getStackTrace()) {
				if (trace.size() < TRACE_MAX) {
					trace.add("    at " + at);
				}
			}
		}
		error(e.getClass().getSimpleName(), value, trace);
	}

	static void rejected(Snippet snippet, int line) throws IOException {
		List<String> trace = new ArrayList<>();
		String first = null;
		String source = snippet.source();
		for (Diag d : (Iterable<Diag>) shell.diagnostics(snippet)::iterator) {
			if (d.isError() && trace.size() < TRACE_MAX) {
				int at = (int) Math.max(0, Math.min(d.getPosition(), source.length()));
				int begin = source.lastIndexOf('\n', at - 1) + 1;
				int end = source.indexOf('\n', at);
				int number = line + (int) source.substring(0, at).chars().filter(c -> c == '\n').count();
				String text = d.getMessage(Locale.ROOT);
				first = first == null ? text : first;
				trace.add("<cell " + count + ">:" + number + ": error: " + text);
				trace.add(cut(source.substring(begin, end < 0 ? source.length() : end), 1024));
				trace.add(" ".repeat(Math.min(at - begin, 1024)) + "^");
			}
		}
		error("CompilationException", first == null ? "the code was rejected" : first, trace);
	}

	static boolean is_value(Snippet s) {
		return s.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND || s.subKind() == Snippet.SubKind.VAR_VALUE_SUBKIND
			|| s.subKind() == Snippet.SubKind.OTHER_EXPRESSION_SUBKIND;
	}

	// False: an error was told.
	static boolean snippet(String source, int line, String[] found) throws IOException {
		found[0] = null;
		for (SnippetEvent e : shell.eval(source)) {
			if (e.causeSnippet() != null) {
				continue;
			}
			if (stopped) {
				error("KeyboardInterrupt", "interrupted", List.of("interrupted"));
				return false;
			}
			if (e.exception() != null) {
				thrown(e.exception());
				return false;
			}
			if (e.status() == Snippet.Status.REJECTED) {
				rejected(e.snippet(), line);
				return false;
			}
			if (is_value(e.snippet()) && e.value() != null && !e.value().isEmpty()) {
				found[0] = e.value();
			}
		}
		return true;
	}

	static void run(String code) throws IOException {
		String[] found = new String[1];
		String rest = code;
		boolean good = true;
		count++;
		last = null;
		stopped = false;
		running = true;
		while (good && !rest.isBlank()) {
			int line = 1 + (int) code.substring(0, code.length() - rest.length()).chars().filter(c -> c == '\n').count();
			SourceCodeAnalysis.CompletionInfo info = shell.sourceCodeAnalysis().analyzeCompletion(rest);
			boolean whole = info.completeness().isComplete() && info.source() != null;
			String source = whole ? info.source() : rest;
			if (info.completeness() == SourceCodeAnalysis.Completeness.EMPTY) {
				break;
			}
			good = snippet(source, line, found);
			rest = whole ? info.remaining() : "";
		}
		System.out.flush();
		System.err.flush();
		running = false;
		if (good && found[0] != null) {
			tell("X", "{\"text/plain\":" + quote(cut(found[0], RESULT_MAX)) + "}");
		}
		tell("F", "{\"execution_count\":" + count + "}");
	}

	// By its name: the compiler would warn of it.
	static void signals() throws Exception {
		Class<?> signal = Class.forName("sun.misc.Signal");
		Class<?> handler = Class.forName("sun.misc.SignalHandler");
		Object on = Proxy.newProxyInstance(handler.getClassLoader(), new Class<?>[] { handler }, (p, m, a) -> {
			if (m.getName().equals("handle") && running) {
				stopped = true;
				shell.stop();
			}
			return null;
		});
		signal.getMethod("handle", signal, handler).invoke(null, signal.getConstructor(String.class).newInstance("INT"), on);
	}

	public static void main(String[] args) throws Exception {
		FileDescriptor fd = channel();
		in = new FileInputStream(fd);
		out = new FileOutputStream(fd);
		System.setOut(new PrintStream(new Stream(FileDescriptor.out), true, "UTF-8"));
		System.setErr(new PrintStream(new Stream(FileDescriptor.err), true, "UTF-8"));
		shell = JShell.builder().executionEngine("local").build();
		String path = System.getenv("CLASSPATH");
		if (path != null && !path.isEmpty()) {
			shell.addToClasspath(path);
		}
		for (String name : IMPORTS) {
			shell.eval("import " + name + ";");
		}
		signals();
		send("H", "{\"language\":\"java\",\"version\":" + quote(System.getProperty("java.version")) + "}");
		while (true) {
			run(receive('R'));
		}
	}
}
