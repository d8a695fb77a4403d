# frozen_string_literal: true

module Heddle
  class Server
    # Writes lines on its own thread. So a stream that no program reads any more (a stopped log driver, a terminal after
    # Ctrl-S) blocks neither a request nor the master. O_NONBLOCK is not a solution: that flag belongs to the open file,
    # which the shell and other programs share. While a loop runs, lines are collected and written together. While no
    # loop runs, each call waits until its line is written, unless the stream is blocked.
    class LineBuffer
      # Minimum number of seconds between two writes while lines are collected.
      DELAY = 0.05
      # Maximum number of bytes that wait to be written. Further lines are dropped and counted.
      LIMIT = 1_048_576
      # Maximum number of seconds that a call waits until its line is written. After a call has waited in vain for this
      # long, further calls return at once, as long as the stream accepts no lines.
      TIMEOUT = 1
      private_constant :DELAY, :LIMIT, :TIMEOUT

      # @param stream [#write]
      # @yield when lines were lost, to build the line that reports the loss; without a block, the report is plain text
      # @yieldparam lines [Integer] how many lines were lost
      # @yieldparam reason [String] why they were lost
      # @yieldreturn [String]
      def initialize(stream, &loss)
        @stream = stream
        @loss = loss || ->(lines, reason) { "#{Events::TABLE.fetch(:log_lines_lost).text({ lines:, reason: })}\n" }
        reset
      end

      # From now on, collects lines and writes several at once.
      # @return [void]
      def start
        run_thread
        @collecting = true
      end

      # Writes the collected lines. From now on, each line is written at once.
      # @return [void]
      def stop
        @collecting = false
        flush
        return if @stuck || !@thread&.alive?

        @requests << :end
        @thread.join(TIMEOUT)
      end

      # @param text [String] one or more lines, each with its line end
      # @return [Integer] the number of bytes
      def write(text)
        run_thread
        bytes = text.bytesize
        text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
        if @lines.bytesize + bytes > LIMIT
          lines = count_lines(text) # before the addition: the writing thread may reset @lost meanwhile
          @lost += lines
        else
          # Ruby switches threads only at calls. No call is between reading @lines and appending to it, so the writing
          # thread can't replace @lines in between.
          @lines << text
        end
        if @thread
          @requests << :lines if @requests.empty?
          flush unless @collecting
        else
          write_lines
        end
        bytes
      end

      # Waits until all lines are written, at most for TIMEOUT and not at all while the stream is blocked.
      # @return [self]
      def flush
        return self if @stuck || @owner != Process.pid || !@thread&.alive?

        written = Thread::Queue.new
        @requests << written
        @stuck = true unless written.pop(timeout: TIMEOUT)
        self
      end

      private

      # A forked child drops the lines that it has inherited: the parent writes them.
      def reset
        @owner = Process.pid
        @requests = Thread::Queue.new
        @lines = +""
        @lost = @unwritten = 0
        @thread = nil
        @collecting = @stuck = false
      end

      def run_thread
        reset if @owner != Process.pid
        return if @thread&.alive?

        @thread = nil
        @thread = Thread.new { run }
        @thread.name = "heddle log"
      rescue ThreadError
        # The system allows no more threads, or the process is ending. The caller then writes the lines itself.
      end

      def run
        # A thread begins with a copy of its creator's fiber storage, which may be a request's.
        Fiber.current.storage&.each_key { |key| Fiber[key] = nil }
        until (request = @requests.pop) == :end
          write_lines
          @stuck = false
          next request << true unless request == :lines

          sleep(DELAY) if @collecting
        end
        write_lines
      end

      def write_lines
        lines = @lines
        return if lines.empty? && @lost == 0

        @lines = +""
        lost, @lost = @lost, 0
        lines << @loss.call(lost, "it is read too slowly") if lost > 0
        put(lines)
      end

      # A failed write, for example because the disk is full, must not stop the server. It is unknown how much of the
      # text was written, so the next text begins with a line end.
      def put(text)
        number = count_lines(text)
        text = "\n#{text}" if @unwritten > 0
        @stream.write(text)
        return if @unwritten == 0

        lost = @unwritten
        @unwritten = 0
        put(@loss.call(lost, @reason))
      rescue StandardError => e
        @unwritten += number
        @reason = PrintableText.line(ErrorText.reason(e))
      end

      # Counts in a binary copy, because String#count raises for invalid UTF-8.
      def count_lines(text) = text.b.count("\n")
    end
  end
end
