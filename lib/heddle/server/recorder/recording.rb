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

        @kept = false
        @taking = nil # the process that records: a fork has no thread that would end it

        class << self
          # From now on the last seconds are kept.
          # @return [void]
          def keep
            @kept = true
            Account.record(KEPT, prefixes) unless taking?
          end

          # @param seconds [Numeric]
          # @return [Snapshot, nil] of these seconds; nil: another one is under way
          def take(seconds)
            return if taking?

            @taking = Process.pid
            begin
              Account.record(TAKEN, prefixes)
              sleep(seconds)
              Snapshot.take
            ensure
              @taking = nil
              Account.record(@kept ? KEPT : nil, prefixes)
            end
          end

          # @return [String] where the process was started; "" when that folder was gone
          def folder
            @folder ||= WorkingFolder.current
          rescue Errno::ENOENT
            @folder = ""
          end

          private

          def taking? = @taking == Process.pid

          # The first that a path begins with counts.
          def prefixes
            helpers = ["#{HEDDLE}/heddle", "<internal:", "#{RbConfig::CONFIG["rubylibdir"]}/",
                       "#{Gem::RUBYGEMS_DIR}/rubygems"]
            [["#{HEDDLE}/heddle/cli/demo", APPLICATION], *helpers.map { |path| [path, HELPER] },
             *::Gem.path.map { |path| ["#{path}/", GEM] }, ["#{folder}/", APPLICATION]]
          end
        end
      end
    end
  end
end
