# frozen_string_literal: true

module Heddle
  module Adaptations
    # Attributes the waits of gems to parts of the request's time account.
    module Waits
      # Prepended to Net::HTTP.
      module Http
        private

        def connect = Account.wait_for(Account::HTTP) { super }

        def transport_request(...) = Account.wait_for(Account::HTTP) { super }
      end

      # Prepended to RedisClient.
      module Redis
        private

        def ensure_connected(...) = Account.wait_for(Account::REDIS) { super }
      end

      # @return [void]
      def self.install
        ::Net::HTTP.prepend(Http) if Adaptations.adapt?(:net_http)
        ::RedisClient.prepend(Redis) if Adaptations.adapt?(:redis_client)
      end
    end
  end
end
