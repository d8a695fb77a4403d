# frozen_string_literal: true

require "rbconfig"

module Heddle
  class Server
    class Recorder
      # Switches the memory of the extension, which all loops of a process share.
      module Recording
        # Stretches of time: while slow requests are searched for, and of `heddle record`.
        KEPT = 16_384
        TAKEN = 131_072
        HEDDLE = ::File.expand_path("../../..", __dir__)
        # Of places: the application's, code that only acts for its caller, a gem's.
        APPLICATION = 0
        HELPER = 1
        GEM = 2
        private_constant :KEPT, :TAKEN, :HEDDLE, :APPLICATION, :HELPER, :GEM

        @kept = @taking = false

        class << self
          # From now on the last seconds are kept.
          # @return [void]
          def keep
            @kept = true
            Account.record(KEPT, prefixes) unless @taking
          end

          # @param seconds [Numeric]
          # @return [Snapshot, nil] of these seconds; nil: another one is under way
          def take(seconds)
            return if @taking

            @taking = true
            begin
              Account.record(TAKEN, prefixes)
              sleep(seconds)
              Snapshot.take
            ensure
              @taking = false
              Account.record(@kept ? KEPT : nil, prefixes)
            end
          end

          private

          # The first that a path begins with counts.
          def prefixes
            helpers = ["#{HEDDLE}/heddle", "<internal:", "#{RbConfig::CONFIG["rubylibdir"]}/",
                       "#{Gem::RUBYGEMS_DIR}/rubygems"]
            [["#{HEDDLE}/heddle/cli/demo", APPLICATION], *helpers.map { |path| [path, HELPER] },
             *::Gem.path.map { |path| ["#{path}/", GEM] }, ["#{Dir.pwd}/", APPLICATION]]
          end
        end
      end
    end
  end
end
