# frozen_string_literal: true

module Heddle
  class Server
    class Recorder
      # Switches the extension's recorder, which all loops of a process share.
      module Recording
        # How many stretches are kept: while the recorder waits for slow requests, and for `heddle record`.
        KEPT = 16_384
        TAKEN = 131_072
        HEDDLE = ::File.expand_path("../../..", __dir__)
        # Kinds of places: the application, code that only acts for its caller, a gem.
        APPLICATION = 0
        HELPER = 1
        GEM = 2
        private_constant :KEPT, :TAKEN, :HEDDLE, :APPLICATION, :HELPER, :GEM

        @kept = false
        @taking = nil # the process that records: a forked child has no thread to end the recording

        class << self
          # Records from now on, and keeps the last seconds.
          # @return [void]
          def keep
            @kept = true
            Account.record(KEPT, prefixes) unless taking?
          end

          # @param seconds [Numeric]
          # @param asker [IO, nil] see {Recorder.record}
          # @return [Snapshot, nil] the recording of these seconds; nil: another recording is under way
          def take(seconds, asker = nil)
            return if taking?

            @taking = Process.pid
            begin
              Account.record(TAKEN, prefixes)
              await(seconds, asker)
              Snapshot.take
            ensure
              @taking = nil
              Account.record(@kept ? KEPT : nil, prefixes)
            end
          end

          private

          def await(seconds, asker)
            return sleep(seconds) unless asker
            # The pipe has an error when its reader has closed it.
            raise Control::RejectedError, "the client has left" if asker.wait_priority(seconds)
          end

          def taking? = @taking == Process.pid

          # @return [Array<Array(String, Integer)>] beginnings of paths, and their kinds; the first that matches counts
          def prefixes
            helpers = ["#{HEDDLE}/heddle", "<internal:", "#{RbConfig::CONFIG["rubylibdir"]}/",
                       "#{Gem::RUBYGEMS_DIR}/rubygems"]
            [["#{HEDDLE}/heddle/cli/demo", APPLICATION], *helpers.map { |path| [path, HELPER] },
             *::Gem.path.map { |path| ["#{path}/", GEM] }, [WorkingFolder.started, APPLICATION]]
          end
        end
      end
    end
  end
end
