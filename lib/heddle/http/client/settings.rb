# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # What connections to an origin are like. Clients with equal ones share connections.
      Settings = Data.define(:tls, :proxy, :deny_private, :max_connections, :idle_timeout)
    end
  end
end
