# frozen_string_literal: true

module Heddle
  class Server
    # Collects lines while a loop runs and writes them together, so that a log costs no system call a request, and one
    # that is not read holds up no request. Without a loop each line is written at once.
    class LineBuffer
      # Seconds that a line may be late.
      DELAY = 0.05
      # Bytes that wait for a reader; further lines are counted and not kept.
      LIMIT = 1_048_576
      # Seconds that the last lines may take.
      FLUSH_TIMEOUT = 1
      private_constant :DELAY, :LIMIT, :FLUSH_TIMEOUT

      # @param stream [#write]
      def initialize(stream)
        @stream = stream
        @lines = +""
        @lost = @unwritten = 0
        @reason = nil
        @task = nil
        @waiting = nil
      end

      # Collects from now on, until the task is cancelled. In a loop.
      # @return [Task]
      def start
        @scheduler = Fiber.scheduler
        @task = Heddle.async(name: "log", background: true) { run }
      end

      # Writes what is left, and from now on each line at once.
      # @return [void]
      def stop
        return unless @task

        @task.cancel
        @task = nil
        Heddle.timeout(FLUSH_TIMEOUT) { flush }
      rescue TimeoutError
        # No program reads them.
      end

      # @param line [String] with its line end
      # @return [void]
      def write(line)
        return put(line) unless @task
        return @lost += 1 if @lines.bytesize + line.bytesize > LIMIT

        @lines << line
        wake if @waiting
      end

      private

      def run
        loop do
          if @lines.empty?
            @waiting = Fiber.current
            @scheduler.park
          end
          sleep(DELAY)
          flush
        ensure
          @waiting = nil
        end
      end

      # From any thread.
      def wake
        fiber = @waiting or return
        @waiting = nil
        @scheduler.unpark(fiber)
      end

      def flush
        lines = @lines
        return if lines.empty? && @lost == 0

        @lines = +""
        lines << "(#{@lost} lines of the log were lost: it is read too slowly)\n" if @lost > 0
        @lost = 0
        put(lines)
      end

      # A log that no program reads any more, or whose disk is full, must not stop the server. How much of the text was
      # written is unknown then, so the next one begins on a line of its own.
      def put(text)
        number = text.count("\n")
        text = "\n(up to #{@unwritten} lines of the log were lost: #{@reason})\n#{text}" if @unwritten > 0
        @stream.write(text)
        @unwritten = 0
      rescue SystemCallError, IOError => e
        @unwritten += number
        @reason = Visible.line(e.message.sub(/ @ .*/, ""))
      end
    end
  end
end
