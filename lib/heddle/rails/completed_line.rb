# frozen_string_literal: true

module Heddle
  module Rails
    # Extends Rails' line "Completed 200 OK in 53ms (…)" by the parts of the time account on which the request has spent
    # most time. Rails counts only the time of the action; the account begins when the request arrives.
    module CompletedLine
      # The line shows at most this many parts, each of at least this many seconds.
      PARTS = 3
      LEAST = 0.001
      private_constant :PARTS, :LEAST

      # Prepended to the singleton class of ActionController::Base and ::API.
      module Messages
        # @see ActionController::Instrumentation::ClassMethods#log_process_action
        def log_process_action(payload) = [*super, *CompletedLine.message(payload[:heddle_account])]
      end

      # Prepended to the controllers. Adds the time account to the payload, for the subscriber that writes the line.
      module Payload
        private

        # @see ActionController::Instrumentation#append_info_to_payload
        def append_info_to_payload(payload)
          super
          payload[:heddle_account] = Account.current
        end
      end

      # @param account [Hash{Symbol => Object}, nil] see {Request}
      # @return [String, nil] the text to add; nil: no part is long enough
      def self.message(account)
        parts = Account::PARTS.filter_map { |part| [part, account[part]] if account&.fetch(part, 0).to_f >= LEAST }
        return if parts.empty?

        largest = parts.max_by(PARTS, &:last).map { |part, time| "#{part} #{(time * 1000).round(1)}ms" }
        "Heddle, whole request: #{largest.join(", ")}"
      end

      # @return [void]
      def self.install
        ::ActiveSupport.on_load(:action_controller) do
          prepend Payload
          singleton_class.prepend(Messages)
        end
      end
    end
  end
end
