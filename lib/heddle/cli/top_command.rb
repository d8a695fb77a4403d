# frozen_string_literal: true

require "io/console"

module Heddle
  module CLI
    # `heddle top`: what a running server does, again and again, until q.
    class TopCommand < ControlCommand
      NAME = "top"
      ENTER = "\e[?1049h\e[?25l"
      LEAVE = "\e[?25h\e[?1049l"
      HOME = "\e[H"
      CLEAR_LINE = "\e[K"
      CLEAR_REST = "\e[J"
      private_constant :ENTER, :LEAVE, :HOME, :CLEAR_LINE, :CLEAR_REST

      private

      def declare(options)
        super
        @interval = 1.0
        options.on("--interval SECONDS", Float, "seconds between two looks (1)") { |seconds| @interval = seconds }
        options.on("--once", "two looks, printed as text, without a terminal") { @once = true }
        options.on("--tasks", "with the task tree; the key t switches it on and off") { @tasks = true }
      end

      def act
        raise UsageError, "--interval must be more than 0" unless @interval > 0

        @once || !terminal? ? once : watch
        DONE
      end

      def terminal? = @output.respond_to?(:tty?) && @output.tty? && $stdin.tty?

      def once
        before = @client.status
        began = now
        sleep(@interval)
        @output.puts(Overview.new(@client.status, before, now - began).lines, *tasks)
      end

      def watch
        resized = false
        previous = trap("WINCH") { resized = true }
        @output.write(ENTER)
        $stdin.raw(intr: true) do
          before = at = nil
          loop do
            report = @client.status
            time = now
            draw(report, before, at && (time - at))
            before = report
            at = time
            break if quit?(at + @interval) { resized }

            resized = false
          end
        end
      ensure
        @output.write(LEAVE)
        trap("WINCH", previous || "DEFAULT")
      end

      # Waits for the next look; a key, or a terminal of another size, ends that.
      def quit?(deadline)
        while (rest = deadline - now) > 0
          return false if yield
          next unless $stdin.wait_readable([rest, 0.1].min)

          case $stdin.read_nonblock(1, exception: false)
          when "q", "Q", "\e", nil then return true
          when "t"
            @tasks = !@tasks
            return false
          end
        end
        false
      end

      def draw(report, before, elapsed)
        rows, columns = @output.winsize
        lines = Overview.new(report, before, elapsed, requests: rows).lines
        lines.concat(tasks)
        lines = lines.first(rows - 1)
        help = "q quits, t #{@tasks ? "hides" : "shows"} the tasks"
        text = [*lines, help].map { |line| line[0, columns] }.join("#{CLEAR_LINE}\r\n")
        @output.write(HOME, text, CLEAR_LINE, CLEAR_REST)
      end

      def tasks
        return [] unless @tasks

        ["", "tasks:", *@client.tasks.lines(chomp: true)]
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
