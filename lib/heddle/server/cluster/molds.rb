# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The molds that live: one, and during a reload two.
      class Molds
        include Enumerable

        # @param load [#call] gives the application, in the mold; raises BootError
        # @param clock [#call] seconds
        def initialize(load, clock)
          @load = load
          @clock = clock
          @all = []
          @generation = 0
        end

        # Makes one of a worker, which is to leave then.
        # @param worker [WorkerHandle]
        # @return [MoldHandle]
        # @raise [SystemCallError] when there is no descriptor
        def make_of(worker)
          ours, theirs = MessageSocket.pair
          worker.channel.send_message("become_mold", io: theirs.io)
          add(nil, ours, worker.mold.configuration)
        ensure
          theirs&.close
        end

        # Forks one.
        # @param setting [Worker::Setting]
        # @yield in the new process, to close what is the master's alone
        # @return [MoldHandle]
        # @raise [SystemCallError] when there can be no process, or no descriptor
        def start(setting)
          ours, theirs = MessageSocket.pair
          $stdout.flush
          $stderr.flush
          pid = fork do
            ours.close
            each { |mold| mold.channel.close }
            yield
            Mold.new(setting, theirs, &@load).run
          end
          add(pid, ours, setting.configuration)
        rescue SystemCallError
          ours&.close
          raise
        ensure
          theirs&.close
        end

        # @yieldparam mold [MoldHandle]
        def each(&) = @all.each(&)

        # @return [Boolean]
        def empty? = @all.empty?

        # It has ended.
        # @param mold [MoldHandle]
        # @return [void]
        def delete(mold)
          @all.delete(mold)
          mold.channel.close unless mold.silent?
        end

        # @param mold [MoldHandle]
        # @return [void]
        def end_one(mold)
          mold.end!
          delete(mold) unless mold.pid # no process whose end will be heard
        end

        # @return [void]
        def end_all = @all.dup.each { |mold| end_one(mold) }

        private

        def add(pid, channel, configuration)
          mold = MoldHandle.new(pid:, channel:, generation: @generation += 1, configuration:, now: @clock.call)
          @all << mold
          mold
        end
      end
    end
  end
end
