# frozen_string_literal: true

module Heddle
  class Server
    # Writes lines on a thread of its own, so that a stream that no program reads any more (a stopped log driver, a
    # terminal after Ctrl-S) blocks neither a request nor the master. O_NONBLOCK would not do: that flag belongs to the
    # open file, which the shell and other programs share. While a loop runs, lines are collected and written together;
    # otherwise each call waits until its line is written, as long as the stream takes lines.
    class LineBuffer
      # Maximum seconds from a call to the writing of its line.
      DELAY = 0.05
      # Maximum bytes that wait to be written. Further lines are dropped and counted.
      LIMIT = 1_048_576
      # The maximum number of seconds that a call waits until its line is written. If it was not written by then,
      # further calls don't wait before the stream takes lines again.
      TIMEOUT = 1
      private_constant :DELAY, :LIMIT, :TIMEOUT

      # @param stream [#write]
      # @yieldparam lines [Integer] how many lines were lost
      # @yieldparam reason [String]
      # @yieldreturn [String] the line that reports this; without a block it is plain text
      def initialize(stream, &loss)
        @stream = stream
        @loss = loss || ->(lines, reason) { "#{Events::TABLE.fetch(:log_lines_lost).text({ lines:, reason: })}\n" }
        reset
      end

      # From now on lines are collected.
      # @return [void]
      def start
        run_thread
        @collecting = true
      end

      # Writes the collected lines, and from now on each line at once.
      # @return [void]
      def stop
        @collecting = false
        flush
        return if @stuck || !@thread&.alive?

        @requests << :end
        @thread.join(TIMEOUT)
      end

      # @param text [String] with its line end
      # @return [Integer] bytes
      def write(text)
        run_thread
        bytes = text.bytesize
        text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
        if @lines.bytesize + bytes > LIMIT then @lost += count_lines(text)
        else
          # Between reading @lines and appending there is no call, in which Ruby could switch to the writing thread.
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

      # Waits until all lines are written, as long as the stream takes lines.
      # @return [self]
      def flush
        return self if @stuck || @owner != Process.pid || !@thread&.alive?

        written = Thread::Queue.new
        @requests << written
        @stuck = true unless written.pop(timeout: TIMEOUT)
        self
      end

      private

      # A child process drops the lines that it has inherited: the parent writes them.
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
        # The system allows no more threads, or the process ends. The caller then writes the lines itself.
      end

      def run
        # A thread begins with a copy of its creator's fiber storage, which may be a request's.
        Fiber.current.storage&.each_key { |key| Fiber[key] = nil }
        until (request = @requests.pop) == :end
          sleep(DELAY) if request == :lines && @collecting
          write_lines
          @stuck = false
          request << true unless request == :lines
        end
        write_lines
      end

      def write_lines
        lines = @lines
        return if lines.empty? && @lost == 0

        @lines = +""
        lines << @loss.call(@lost, "it is read too slowly") if @lost > 0
        @lost = 0
        put(lines)
      end

      # A log that no program reads any more, or whose disk is full, must not stop the server. How much of the text was
      # written is then unknown, so the next text begins on a line of its own.
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
        @reason = PrintableText.line(e.message.sub(/ @ .*/, ""))
      end

      # The text may have bytes that are not UTF-8.
      def count_lines(text) = text.b.count("\n")
    end
  end
end
