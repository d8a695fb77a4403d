# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle top`: shows the state of a running server again and again, until q.
    class TopCommand < ControlCommand
      include MonotonicClock

      NAME = "top"
      ENTER = "\e[?1049h\e[?25l"
      LEAVE = "\e[?25h\e[?1049l"
      HOME = "\e[H"
      CLEAR_LINE = "\e[K"
      CLEAR_REST = "\e[J"
      # Rows and columns of a terminal that does not tell its size.
      SIZE = [24, 80].freeze
      # The bytes that a terminal sends for a key.
      KEY = /\e[\[O]?[A-Z~]?|./m
      UP = ["\e[A", "\eOA", "k"].freeze
      DOWN = ["\e[B", "\eOB", "j"].freeze
      QUIT = ["q", "Q", "\e"].freeze
      private_constant :ENTER, :LEAVE, :HOME, :CLEAR_LINE, :CLEAR_REST, :SIZE, :KEY, :UP, :DOWN, :QUIT

      private

      def declare(options)
        super
        @interval = 1.0
        @above = 0
        options.on("--interval SECONDS", Float, "seconds between two updates (1)") { |seconds| @interval = seconds }
        options.on("--once", "print one update as text and exit; needs no terminal") { @once = true }
        options.on("--tasks", "show the task tree, too; the key t switches it on and off") { @tasks = true }
      end

      def act
        raise UsageError, "--interval must be more than 0 seconds, but is #{@interval}" unless @interval > 0

        @once || !terminal? || !$stdin.tty? ? once : watch
        DONE
      end

      def once
        before = @client.status
        began = now
        sleep(@interval)
        @output.puts(overview(@client.status, before, now - began))
        @output.puts("", "tasks:", Visible.lines(@client.tasks, indent: "")) if @tasks
      end

      def watch
        resized = false
        previous = trap("WINCH") { resized = true }
        @screen_colour = Screen.coloured?(@output)
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

          keys = $stdin.read_nonblock(64, exception: false)&.scan(KEY)
          return true if keys.nil? || keys.intersect?(QUIT)
          return false if keys.map { |key| follow(key) }.any?
        end
        false
      end

      # @return [Boolean] whether there is something else to be seen now
      def follow(key)
        case key
        when "t"
          @tasks = !@tasks
          @above = 0
        when *UP then @above = [@above - 1, 0].max
        when *DOWN then @above += 1
        else return false
        end
        true
      end

      def draw(report, before, elapsed)
        rows, columns = size
        overview = Overview.new(report, before, elapsed, rows: rows - 1, columns:, plain: Screen.plain?)
        lines = @tasks ? [*overview.head, *tasks(rows - 2 - overview.head.size)] : overview.lines
        screen = Screen.new(columns:, colour: @screen_colour)
        lines = [*lines.first(rows - 1), help_line]
        @output.write(HOME, lines.map { |line| screen.render(line) }.join("#{CLEAR_LINE}\r\n"), CLEAR_LINE, CLEAR_REST)
      end

      def help_line
        keys = @tasks ? "t hides the tasks, up and down move them" : "t shows the tasks"
        [["q quits, #{keys}", :quiet]]
      end

      # As many as there is room for, from where the keys have moved to.
      def tasks(room)
        lines = @client.tasks.lines(chomp: true)
        room = [room, 0].max
        @above = @above.clamp(0, [lines.size - room, 0].max)
        [[["tasks:", :title], " lines #{@above + 1} to #{[@above + room, lines.size].min} of #{lines.size}"],
         *lines[@above, room]]
      end

      def size
        rows, columns = @output.winsize
        rows > 0 && columns > 0 ? [rows, columns] : SIZE
      end
    end
  end
end
