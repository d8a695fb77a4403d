# frozen_string_literal: true

module Trials
  # The database servers that suites need: private ones, for one suite each.
  module Servers
    # @param name [String, nil] mariadb, or nothing
    # @yieldparam environment [Hash] how the suite finds it
    def self.with(name)
      return yield({}) unless name

      $LOAD_PATH.unshift(File.expand_path("../..", __dir__))
      require "support/private_#{name}"
      server = PrivateMariadb.new
      yield("HEDDLE_TRIAL_SOCKET" => server.socket)
    ensure
      server&.stop
    end
  end
end
