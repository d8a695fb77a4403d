# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # `tmp/restart.txt`: touching this file requests a reload, as with Phusion Passenger.
      class RestartFile
        NAME = "tmp/restart.txt"

        # @param folder [String] the application's
        def initialize(folder)
          @path = File.join(folder, NAME)
          @seen = changed_at
        end

        # @return [Boolean] whether it was touched since the last call
        def touched?
          at = changed_at
          return false if at.nil? || at == @seen

          @seen = at
          true
        end

        private

        def changed_at
          File.mtime(@path)
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
