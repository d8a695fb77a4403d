# frozen_string_literal: true

module Heddle
  class Server
    class Recorder
      # Switches the recorder of the C extension on and off. All loops of a process share it.
      module Recording
        # How many stretches (periods of one fiber's time) the recorder keeps: while it waits for slow requests (KEPT),
        # and during `heddle record` (TAKEN).
        KEPT = 16_384
        TAKEN = 131_072
        HEDDLE = ::File.expand_path("../../..", __dir__)
        # Kinds of files: of the application (APPLICATION), of Ruby or Heddle (HELPER), and of a gem (GEM). Code in a
        # HELPER file counts as code of its caller. The same numbers are in ext/heddle/scheduler/recorder_places.c.
        APPLICATION = 0
        HELPER = 1
        GEM = 2
        private_constant :KEPT, :TAKEN, :HEDDLE, :APPLICATION, :HELPER, :GEM

        @kept = false
        # The ID of the process that makes a recording, or nil. A forked child must ignore the recording of its parent,
        # because the child has no thread that ends the recording.
        @taking = nil

        class << self
          # Records from now on, and keeps only the last seconds.
          # @return [void]
          def keep
            @kept = true
            Account.record(KEPT, prefixes) unless taking?
          end

          # @param seconds [Numeric]
          # @param asker [IO, nil] see {Recorder.record}
          # @return [Snapshot, nil] what was recorded; nil: another recording is under way
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
            # A pipe whose reading end is closed has an error, which wakes this wait.
            raise Control::RejectedError, "the client has left" if asker.wait_priority(seconds)
          end

          def taking? = @taking == Process.pid

          # @return [Array<Array(String, Integer)>] prefixes of paths, each with the kind of the files whose paths begin
          #   with it; the first prefix that matches a path counts
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
