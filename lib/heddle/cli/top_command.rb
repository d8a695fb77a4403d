# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle top`: shows the live status of a running server until q is pressed.
    class TopCommand < ControlCommand
      include MonotonicClock

      NAME = "top"
      ENTER = "\e[?1049h\e[?25l"
      LEAVE = "\e[?25h\e[?1049l"
      HOME = "\e[H"
      CLEAR_LINE = "\e[K"
      CLEAR_REST = "\e[J"
      # The assumed rows and columns of a terminal that does not report its size.
      SIZE = [24, 80].freeze
      # Matches q and Escape, but not the escape sequences of other keys, such as arrows.
      QUIT = /q|\e(?![\[O])/i
      private_constant :ENTER, :LEAVE, :HOME, :CLEAR_LINE, :CLEAR_REST, :SIZE, :QUIT

      private

      def declare(options)
        super
        @interval = 1.0
        options.on("--interval SECONDS", Float, "seconds between two updates (default: 1)") do |seconds|
          @interval = seconds
        end
      end

      def act
        raise UsageError, "--interval must be more than 0 (seconds), but is #{@interval}" unless @interval > 0

        report = client.status # called before the screen changes, because it raises if no server runs
        unless terminal? && $stdin.tty?
          raise UsageError, "heddle top needs a terminal; heddle status works without a terminal"
        end

        watch(report)
        DONE
      end

      def watch(report)
        resized = false
        previous = trap("WINCH") { resized = true }
        @screen_colour = Screen.coloured?(@output)
        @output.write(ENTER)
        $stdin.raw(intr: true) do
          before = at = nil
          loop do
            time = now
            draw(report, before, at && (time - at))
            before = report
            at = time
            break if quit?(at + @interval) { resized }

            resized = false
            report = client.status
          end
        end
      ensure
        @output.write(LEAVE)
        trap("WINCH", previous || "DEFAULT")
      end

      # Waits for a key until the next update is due. A resized terminal ends the wait.
      def quit?(deadline)
        while (rest = deadline - now) > 0
          return false if yield
          next unless $stdin.wait_readable([rest, 0.1].min)

          keys = $stdin.read_nonblock(64, exception: false)
          return true if keys.nil? || QUIT.match?(keys.to_s)
        end
        false
      end

      def draw(report, before, elapsed)
        rows, columns = size
        lines = StatusText.new(report, before, elapsed, rows: rows - 1, columns:).lines
        screen = Screen.new(columns:, colour: @screen_colour)
        lines = [*lines.first(rows - 1), [["q quits", :quiet]]]
        @output.write(HOME, lines.map { |line| screen.render(line) }.join("#{CLEAR_LINE}\r\n"), CLEAR_LINE, CLEAR_REST)
      end

      def size
        rows, columns = @output.winsize
        rows > 0 && columns > 0 ? [rows, columns] : SIZE
      end
    end
  end
end
