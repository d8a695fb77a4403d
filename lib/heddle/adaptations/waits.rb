# frozen_string_literal: true

module Heddle
  module Adaptations
    # Records the waits of gems in the request's time account, which shows where a request has spent its time.
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
