# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The file `tmp/restart.txt`. As with Phusion Passenger, touching it requests a reload.
      class RestartFile
        NAME = "tmp/restart.txt"

        # @param folder [String] the application's folder
        def initialize(folder)
          @path = File.join(folder, NAME)
          @seen = changed_at
        end

        # @return [Boolean] whether the file was created or touched since the last call, or since this object was made
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
