# frozen_string_literal: true

require "json"

module Heddle
  module CLI
    # `heddle status`: prints the status of a running server.
    class StatusCommand < ControlCommand
      NAME = "status"

      private

      def declare(options)
        super
        options.on("--json", "print the whole status as JSON") { @json = true }
        options.on("--tasks", "list each task and where it waits") { @tasks = true }
      end

      def act
        if @tasks then say(client.tasks)
        elsif @json then @output.puts(PrintableText.json(JSON.pretty_generate(client.status)))
        else @output.puts(status_text)
        end
        DONE
      end

      def status_text
        columns = @output.winsize.last if terminal?
        screen = Screen.new(colour: Screen.coloured?(@output))
        StatusText.new(client.status, columns:).lines.map { |line| screen.render(line) }
      end
    end
  end
end
