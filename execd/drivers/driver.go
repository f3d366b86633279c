// SPDX-License-Identifier: Apache-2.0
// Go 1.18 and later. The channel is descriptor 3 (code_frame.h); the argument is a directory of our own.
//
// Go has no interpreter: declarations are kept, each under its names, and every run is a program made of them and of
// the statements of its cell, compiled and executed.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	channelMax = 4 << 20
	resultMax  = 2 << 20
	textMax    = 64 << 10
	traceMax   = 200
)

// Imported where a cell uses them without saying so.
var known = map[string]string{}

func init() {
	for _, p := range strings.Fields("bufio bytes context errors fmt io log math os path reflect regexp runtime sort strconv strings sync " +
		"time unicode crypto/sha256 encoding/base64 encoding/hex encoding/json math/big math/rand net/http os/exec path/filepath") {
		known[path.Base(p)] = p
	}
}

type piece struct {
	kind  string // "import", "func", …, "" for a statement
	names []string
	text  string
	line  int
}

type state struct {
	dir     string
	in      *bufio.Reader
	out     *os.File
	kept    []piece
	imports map[string]string // name or path, to the line of import
	count   int
}

func (s *state) send(kind string, value interface{}) {
	payload := []byte{}
	if value != nil {
		payload, _ = json.Marshal(value)
	}
	if _, err := fmt.Fprintf(s.out, "%s %d\n%s", kind, len(payload), payload); err != nil {
		s.leave()
	}
}

func (s *state) leave() {
	os.RemoveAll(s.dir)
	os.Exit(0)
}

func (s *state) receive(kind string) string {
	for {
		head, err := s.in.ReadString('\n')
		fields := strings.Fields(head)
		if err != nil || len(fields) != 2 {
			s.leave()
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil || n < 0 || n > channelMax {
			s.leave()
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(s.in, data); err != nil {
			s.leave()
		}
		if fields[0] == kind {
			return string(data)
		}
	}
}

// What has been written is read before what is told next.
func (s *state) tell(kind string, value interface{}) {
	s.send("S", nil)
	s.receive("A")
	s.send(kind, value)
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("\n... (%d bytes more)", len(text)-most)
}

func (s *state) fail(name, value string, trace []string) {
	if len(trace) > traceMax {
		trace = append(trace[:traceMax], "...")
	}
	s.tell("E", map[string]interface{}{"ename": name, "evalue": cut(value, textMax), "traceback": trace})
}

// The names that a declaration gives. Nil: it is none, or not a whole one.
func declared(text string) (string, []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, parser.SkipObjectResolution)
	if err != nil || len(file.Decls) != 1 {
		return "", nil
	}
	names := []string{}
	switch d := file.Decls[0].(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil && len(d.Recv.List) == 1 {
			name = strings.TrimLeft(text[d.Recv.List[0].Type.Pos()-11:d.Recv.List[0].Type.End()-11], "* ") + "." + name
		}
		return "func", append(names, name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch v := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, v.Name.Name)
			case *ast.ValueSpec:
				for _, id := range v.Names {
					names = append(names, id.Name)
				}
			case *ast.ImportSpec:
				name := v.Path.Value
				if v.Name != nil {
					name = v.Name.Name + " " + name
				}
				names = append(names, name)
			}
		}
		return d.Tok.String(), names
	}
	return "", nil
}

// A cell in its pieces: each ends where a line may end a statement, outside of all brackets.
func divide(code string) ([]piece, error) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(code))
	pieces := []piece{}
	depth, begin := 0, -1
	var lex scanner.Scanner
	var failed error

	lex.Init(file, []byte(code), func(at token.Position, text string) {
		if failed == nil {
			failed = fmt.Errorf("cell:%d:%d: %s", at.Line, at.Column, text)
		}
	}, 0)
	for {
		pos, tok, lit := lex.Scan()
		at := file.Offset(pos)
		switch tok {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
		}
		if begin < 0 && tok != token.SEMICOLON && tok != token.EOF {
			begin = at
		}
		if begin >= 0 && (tok == token.EOF || (tok == token.SEMICOLON && depth <= 0)) {
			end := at
			if tok == token.SEMICOLON && lit == ";" {
				end++
			}
			p := piece{text: code[begin:end], line: file.Line(file.Pos(begin))}
			p.kind, p.names = declared(p.text)
			if !strings.HasPrefix(p.text, "package ") {
				pieces = append(pieces, p)
			}
			begin = -1
		}
		if tok == token.EOF {
			return pieces, failed
		}
	}
}

func overlaps(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y && x != "_" && x != "init" {
				return true
			}
		}
	}
	return false
}

// What is kept when p comes: nothing that it declares anew.
func replace(kept []piece, p piece) []piece {
	left := []piece{}
	for _, old := range kept {
		if !overlaps(old.names, p.names) {
			left = append(left, old)
		}
	}
	return append(left, p)
}

func (s *state) importLines(body string) string {
	used := map[string]bool{}
	// What does not parse is told by the compiler.
	if file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+body, parser.SkipObjectResolution); file != nil {
		_ = err
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := sel.X.(*ast.Ident); ok {
					used[id.Name] = true
				}
			}
			return true
		})
	}
	lines := []string{}
	for spec, name := range s.imports {
		if name == "_" || name == "." || used[name] {
			lines = append(lines, "import "+spec+"\n")
			delete(used, name)
		}
	}
	for name := range used {
		if p, ok := known[name]; ok {
			lines = append(lines, fmt.Sprintf("import %q\n", p))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

// The name that an import gives: its own, or by custom the last part of its path.
func importName(spec string) string {
	fields := strings.Fields(spec)
	if len(fields) == 2 {
		return fields[0]
	}
	p, _ := strconv.Unquote(spec)
	base := path.Base(p)
	if len(base) > 1 && base[0] == 'v' && base[1] <= '9' {
		base = path.Base(path.Dir(p))
	}
	return base
}

const show = `
func osbxShow(values ...interface{}) {
	out := osbxos.NewFile(3, "result")
	for i, v := range values {
		if i > 0 {
			osbxfmt.Fprint(out, " ")
		}
		osbxfmt.Fprintf(out, "%+v", v)
	}
	out.Close()
}
`

func isPrint(text string) bool {
	return strings.HasPrefix(text, "fmt.") || strings.HasPrefix(text, "print") || strings.HasPrefix(text, "panic(")
}

func isExpression(text string) bool {
	_, err := parser.ParseExpr(text)
	return err == nil
}

func (s *state) program(kept, cell []piece, shows bool) string {
	var body strings.Builder
	for _, p := range kept {
		fmt.Fprintf(&body, "//line %s:%d\n%s\n", "cell", p.line, p.text)
	}
	hasMain := false
	for _, p := range kept {
		hasMain = hasMain || (p.kind == "func" && p.names[0] == "main")
	}
	if !hasMain || len(cell) > 0 {
		body.WriteString("func main() {\n")
		for i, p := range cell {
			text := p.text
			if shows && i == len(cell)-1 {
				text = "osbxShow(" + strings.TrimRight(text, "; \t") + ")"
			}
			fmt.Fprintf(&body, "//line %s:%d\n%s\n", "cell", p.line, text)
		}
		body.WriteString("}\n")
	}
	text := "package main\n" + s.importLines(body.String())
	if shows {
		text += "import osbxfmt \"fmt\"\nimport osbxos \"os\"\n"
	}
	text += body.String()
	if shows {
		text += "//line osbx:1\n" + show
	}
	return text
}

func (s *state) build(text string) (string, error) {
	source := filepath.Join(s.dir, "main.go")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(s.dir, "cell"), source)
	build.Dir = s.dir
	said, err := build.CombinedOutput()
	return string(said), err
}

func (s *state) execute() (string, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	program := exec.Command(filepath.Join(s.dir, "cell"))
	program.Stdout, program.Stderr = os.Stdout, os.Stderr
	program.ExtraFiles = []*os.File{write}
	err = program.Start()
	write.Close()
	if err != nil {
		return "", err
	}
	// A child that it leaves behind may hold the pipe for ever.
	result := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(io.LimitReader(read, resultMax+1))
		result <- string(data)
	}()
	err = program.Wait()
	select {
	case text := <-result:
		return text, err
	default:
	}
	read.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	return <-result, err
}

func (s *state) run(code string) {
	s.count++
	pieces, err := divide(strings.ReplaceAll(code, "\r\n", "\n"))
	if err != nil {
		s.fail("SyntaxError", err.Error(), []string{err.Error()})
		return
	}
	kept, cell := append([]piece{}, s.kept...), []piece{}
	before := map[string]string{}
	for spec, name := range s.imports {
		before[spec] = name
	}
	for _, p := range pieces {
		switch p.kind {
		case "":
			cell = append(cell, p)
		case "import":
			for _, spec := range p.names {
				s.imports[spec] = importName(spec)
			}
		default:
			kept = replace(kept, p)
		}
	}
	if len(cell) == 0 && len(pieces) == 0 {
		return
	}
	if len(cell) > 0 {
		kept = replace(kept, piece{kind: "func", names: []string{"main"}})
		kept = kept[:len(kept)-1]
	}
	shows := len(cell) > 0 && isExpression(cell[len(cell)-1].text) && !isPrint(cell[len(cell)-1].text)
	said, err := s.build(s.program(kept, cell, shows))
	if err != nil && shows && strings.Contains(said, "used as value") {
		shows = false
		said, err = s.build(s.program(kept, cell, false))
	}
	if err != nil {
		s.imports = before
		lines := []string{}
		for _, line := range strings.Split(strings.TrimSpace(said), "\n") {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, strings.TrimPrefix(line, "./"))
			}
		}
		value := err.Error()
		if len(lines) > 0 {
			value = lines[0]
		}
		s.fail("CompileError", value, lines)
		return
	}
	s.kept = kept
	text, err := s.execute()
	// A main of the code's own has had its turn.
	s.kept = replace(s.kept, piece{kind: "func", names: []string{"main"}})
	s.kept = s.kept[:len(s.kept)-1]
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			name := "ExitError"
			if status.Signal() == syscall.SIGINT {
				name = "Interrupted"
			}
			s.fail(name, "signal: "+status.Signal().String(), []string{})
			return
		}
		name := "ExitError"
		if interrupted() {
			name = "Interrupted"
		}
		s.fail(name, exit.Error(), []string{})
		return
	}
	if err != nil {
		s.fail("ExitError", err.Error(), []string{})
		return
	}
	if shows {
		s.tell("X", map[string]string{"text/plain": cut(strings.ToValidUTF8(text, "\ufffd"), resultMax)})
	}
}

var signals = make(chan os.Signal, 8)

// Was there an interrupt since the last time?
func interrupted() bool {
	found := false
	for {
		select {
		case <-signals:
			found = true
		default:
			return found
		}
	}
}

func main() {
	syscall.CloseOnExec(3)
	channel := os.NewFile(3, "channel")
	s := &state{dir: os.Args[1], in: bufio.NewReader(channel), out: channel, imports: map[string]string{}}
	signal.Notify(signals, os.Interrupt)
	s.send("H", map[string]string{"language": "go", "version": strings.TrimPrefix(runtime.Version(), "go")})
	for {
		code := s.receive("R")
		interrupted()
		s.run(code)
		s.tell("F", map[string]int{"execution_count": s.count})
	}
}
