# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle learned`: which endpoints have held up their workers, and to forget them.
    class LearnedCommand < ControlCommand
      NAME = "learned"

      private

      def declare(options)
        super
        options.on("--json", "the same as JSON") { @json = true }
        options.on("--reset [ENDPOINT]", "forget this endpoint, as it is listed, such as 'GET /reports/:id'; without " \
                                         "one, all") { |endpoint| @reset = [endpoint] }
      end

      def act
        if @reset then @output.puts(@client.command("learned-reset", endpoint: @reset.first))
        elsif @json then @output.puts(JSON.pretty_generate(learned))
        else @output.puts(LearnedTable.new(learned).lines)
        end
        DONE
      end

      def learned
        @client.status[:learned] or
          raise Server::Control::Client::Declined, "this server is one process without a master, which learns " \
                                                   "nothing of its endpoints. Start it with --workers 2"
      end
    end
  end
end
