# SPDX-License-Identifier: Apache-2.0
# Ruby 2.5 and later. The channel is descriptor 3 (code_frame.h); the code runs at the top level, in its binding.
module OSBX__
  CHANNEL = IO.for_fd(3, "r+b", autoclose: false)
  RESULT_MAX = 2 << 20
  TEXT_MAX = 64 << 10
  TRACE_MAX = 200
  ESCAPES = Hash.new { |h, c| h[c] = format("\\u%04x", c.ord) }.merge!(
    '"' => '\\"', "\\" => "\\\\", "\n" => "\\n", "\t" => "\\t", "\0" => "\\ufffd"
  )

  @count = 0
  @running = false
  @guard = 0
  @pending = false
  @last = nil
  @pid = Process.pid
  @lock = Monitor.new

  class << self
    attr_reader :running

    # Where no Interrupt may strike; it comes at the end.
    def guarded
      main = Thread.current == Thread.main
      @guard += 1 if main
      begin
        @lock.synchronize { yield }
      ensure
        if main
          @guard -= 1
          if @guard == 0 && @pending && @running
            @pending = false
            raise Interrupt, "interrupted"
          end
        end
      end
    end

    def interrupt
      if @guard > 0
        @pending = true
      elsif @running
        Thread.main.raise(Interrupt, "interrupted")
      end
    end

    def send(kind, payload = "")
      CHANNEL.write("#{kind} #{payload.bytesize}\n".b + payload.b)
      CHANNEL.flush
    end

    def receive
      loop do
        head = CHANNEL.gets
        exit!(0) if head.nil?
        kind, length = head.split
        payload = length.to_i.zero? ? "" : CHANNEL.read(length.to_i)
        return payload.force_encoding("UTF-8") if kind == yield
      end
    end

    # What has been written is read before what is written to the other stream.
    def switch(stream)
      return if @last.equal?(stream) || !@running || Process.pid != @pid
      guarded do
        unless @last.nil?
          send("S")
          receive { "A" }
        end
        @last = stream
      end
    end

    def text(value)
      text = value.to_s
      text = text.encode("UTF-8", invalid: :replace, undef: :replace) unless text.encoding == Encoding::UTF_8
      text.scrub
    rescue StandardError
      "(text that cannot be shown)"
    end

    def quote(value)
      '"' + text(value).gsub(/["\\\u0000-\u001f]/) { |c| ESCAPES[c] } + '"'
    end

    def cut(text, most)
      text.length <= most ? text : text[0, most] + "\n... (#{text.length - most} characters more)"
    end

    def tell(kind, json)
      send("S")
      send(kind, json)
    end

    def place(line)
      !line.start_with?("<osbx>", "-e:1:in")
    end

    def report(error)
      name = error.class.name.to_s
      message = cut(text((error.message rescue "(an error without a text: its message failed)")), TEXT_MAX)
      lines = ["#{name}: #{message}"] + (error.backtrace || []).select { |l| place(l) }.first(TRACE_MAX).map { |l| "    from #{l}" }
      cause = error.cause
      lines << "cause: #{cause.class.name}: #{cut(text((cause.message rescue "")), TEXT_MAX)}" if cause
      tell("E", "{\"ename\":#{quote(name)},\"evalue\":#{quote(message)},\"traceback\":[#{lines.map { |l| quote(l) }.join(",")}]}")
    end

    def shown(value)
      found = { "text/plain" => cut(text(value.inspect), RESULT_MAX) }
      if value.respond_to?(:to_html) && !value.is_a?(String)
        html = (value.to_html rescue nil)
        found["text/html"] = html if html.is_a?(String) && html.length <= RESULT_MAX
      end
      "{" + found.map { |kind, data| "#{quote(kind)}:#{quote(data)}" }.join(",") + "}"
    end

    def flush
      [$stdout, $stderr, STDOUT, STDERR].each { |io| (io.flush rescue nil) }
    end

    # The code has forked, and its child has come to its end.
    def child_end(error)
      return if Process.pid == @pid
      STDERR.puts("#{error.class}: #{error.message}") unless error.nil? || error.is_a?(SystemExit)
      flush
      exit!(error.is_a?(SystemExit) ? error.status : error.nil? ? 0 : 1)
    end

    def finish(error, found)
      @guard += 1
      flush
      if error
        report(error)
      elsif !found.nil?
        tell("X", found)
      end
      @running = false
      @pending = false
      @last = nil
      tell("F", "{\"execution_count\":#{@count}}")
      @guard -= 1
    end

    def run(code)
      error = found = nil
      @count += 1
      begin
        @running = true
        value = eval(code, TOPLEVEL_BINDING, "<cell #{@count}>", 1)
        found = value.nil? ? nil : shown(value)
      rescue Exception => e
        error = e
      end
      child_end(error)
      finish(error, found)
    rescue Interrupt => e
      finish(e, nil)
    end

    def begin
      CHANNEL.close_on_exec = true
      CHANNEL.sync = true
      Signal.trap("INT") { interrupt }
      [STDOUT, STDERR].each do |io|
        io.sync = true
        io.set_encoding("UTF-8") if io.external_encoding.nil?
        io.singleton_class.send(:prepend, Stream)
      end
      send("H", "{\"language\":\"ruby\",\"version\":\"#{RUBY_VERSION}\"}")
      loop { run(receive { "R" }) }
    end
  end

  module Stream
    def write(*parts)
      OSBX__.switch(self)
      super
    end
  end
end
# Ruby writes warnings around the method, which the code may still replace.
def Warning.warn(message, **)
  $stderr.write(message)
  nil
end
$0 = "ruby"
OSBX__.begin
