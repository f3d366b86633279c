# SPDX-License-Identifier: Apache-2.0
# R 3.6 and later. R opens no descriptor by its number: two cats, deaf to interrupts, carry the channel (code_frame.h).
#
# The names of ours are in an environment that the code does not see; it runs in the global one.
local({
	# In the background: R waits for what it has started itself when it ends.
	reader <- pipe("trap '' INT; exec 4<&-; cat <&3 3<&- &", "rb")
	writer <- pipe("trap '' INT; exec 4<&0; cat <&4 >&3 3>&- 4<&- &", "wb")
	result_max <- 2097152L
	text_max <- 65536L
	count <- 0L
	last <- ""
	on <- FALSE
	old <- 0L
	stop_now <- stop

	quote_json <- function(x) {
		x <- enc2utf8(paste(x, collapse = "\n"))
		x <- gsub("\\", "\\\\", x, fixed = TRUE)
		x <- gsub("\"", "\\\"", x, fixed = TRUE)
		x <- gsub("\n", "\\n", x, fixed = TRUE)
		x <- gsub("\t", "\\t", x, fixed = TRUE)
		x <- gsub("\r", "\\r", x, fixed = TRUE)
		paste0("\"", gsub("[\001-\037]", "?", x), "\"")
	}
	cut <- function(x, most) if (nchar(x) <= most) x else paste0(substr(x, 1L, most), "\n... (more)")
	send <- function(kind, payload = "") {
		data <- charToRaw(payload)
		writeBin(c(charToRaw(sprintf("%s %d\n", kind, length(data))), data), writer)
		flush(writer)
	}
	receive <- function(wanted) {
		repeat {
			head <- raw(0)
			repeat {
				byte <- readBin(reader, "raw", 1L)
				if (length(byte) == 0L) quit("no", 0L, FALSE)
				if (byte == as.raw(10L)) break
				head <- c(head, byte)
			}
			head <- strsplit(rawToChar(head), " ", fixed = TRUE)[[1L]]
			n <- as.integer(head[2L])
			data <- raw(0)
			while (length(data) < n) data <- c(data, readBin(reader, "raw", n - length(data)))
			if (head[1L] == wanted) {
				text <- rawToChar(data)
				Encoding(text) <- "UTF-8"
				return(text)
			}
		}
	}
	tell <- function(kind, json) {
		flush(stdout())
		send("S")
		send(kind, json)
	}
	report <- function(name, value, trace) {
		lines <- paste(vapply(trace, quote_json, ""), collapse = ",")
		tell("E", sprintf("{\"ename\":%s,\"evalue\":%s,\"traceback\":[%s]}", quote_json(name), quote_json(cut(value, text_max)), lines))
	}
	# What has been written is read before a message, and that before what comes behind it.
	turn <- function() {
		flush(stdout())
		send("S")
		receive("A")
	}
	said <- function(text) {
		suspendInterrupts({
			turn()
			cat(text, file = stderr())
			turn()
		})
	}
	calls_of <- function(calls) {
		lines <- vapply(calls, function(one) cut(paste(deparse(one, nlines = 2L), collapse = " "), 200L), "")
		ours <- which(startsWith(lines, "withVisible(eval(expr"))
		if (length(ours) > 0L) lines <- lines[-seq_len(ours[1L])]
		lines <- lines[!grepl("^(eval\\(expr|h\\(simpleError|\\.handleSimpleError|\\(function \\(e\\))", lines)]
		utils::head(lines, 50L)
	}
	shown <- function(value) {
		text <- paste(utils::capture.output(if (isS4(value)) methods::show(value) else print(value)), collapse = "\n")
		sprintf("{\"text/plain\":%s}", quote_json(cut(text, result_max)))
	}
	execute <- function(code, name) {
		parsed <- tryCatch(parse(text = code, keep.source = FALSE, encoding = "UTF-8"), error = function(e) e)
		if (inherits(parsed, "error")) {
			text <- sub("^<text>:", "", conditionMessage(parsed))
			report("SyntaxError", text, strsplit(paste0(name, ":", text), "\n", fixed = TRUE)[[1L]])
			return(NULL)
		}
		found <- NULL
		for (i in seq_along(parsed)) {
			expr <- parsed[[i]]
			value <- withVisible(eval(expr, globalenv()))
			if (!value$visible) next
			if (i == length(parsed)) found <- shown(value$value)
			else if (isS4(value$value)) methods::show(value$value)
			else print(value$value)
		}
		found
	}
	run <- function(code) {
		count <<- count + 1L
		calls <- list()
		error <- NULL
		found <- NULL
		tryCatch(withCallingHandlers(allowInterrupts(found <- execute(code, sprintf("<cell %d>", count))),
			error = function(e) calls <<- sys.calls(),
			message = function(m) {
				said(conditionMessage(m))
				invokeRestart("muffleMessage")
			},
			warning = function(w) {
				said(paste0("Warning message:\n", conditionMessage(w), "\n"))
				invokeRestart("muffleWarning")
			}),
			error = function(e) error <<- e,
			interrupt = function(e) error <<- e)
		while (sink.number() > 0L) sink()
		if (inherits(error, "interrupt")) {
			report("interrupt", "interrupted", "interrupted")
		} else if (!is.null(error)) {
			report(class(error)[1L], conditionMessage(error), c(paste0("Error: ", conditionMessage(error)), calls_of(calls)))
		} else if (!is.null(found)) {
			tell("X", found)
		}
		tell("F", sprintf("{\"execution_count\":%d}", count))
	}
	options(warn = 1, device = function(...) grDevices::pdf(NULL))
	send("H", sprintf("{\"language\":\"r\",\"version\":\"%s.%s\"}", R.version$major, R.version$minor))
	suspendInterrupts(repeat run(receive("R")))
}, envir = new.env(parent = baseenv()))
