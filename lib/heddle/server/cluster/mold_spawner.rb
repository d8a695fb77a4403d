# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Forks molds, turns workers into molds, and lists the molds that run: one, or two during a reload.
      class MoldSpawner
        include Enumerable

        # @param load [#call] called in the mold; returns the application, or raises BootError
        # @param clock [#call] seconds
        def initialize(load, clock)
          @load = load
          @clock = clock
          @all = []
          @generation = 0
        end

        # Turns a worker into a mold as soon as it has ended its requests.
        # @param worker [WorkerHandle]
        # @return [MoldHandle]
        # @raise [SystemCallError] when there is no descriptor
        def promote_worker(worker)
          ours, theirs = MessageSocket.pair
          worker.channel.send_message("become_mold", io: theirs.io)
          add(nil, ours, worker.mold.configuration)
        ensure
          theirs&.close
        end

        # Forks a mold, which loads the application.
        # @param setting [Worker::Setting]
        # @yield in the new process, to close the master's own resources
        # @return [MoldHandle]
        # @raise [SystemCallError] when no process can be forked, or no descriptor is left
        def fork_mold(setting)
          ours, theirs = MessageSocket.pair
          $stdout.flush
          $stderr.flush
          pid = fork do
            ours.close
            each { |mold| mold.channel.close }
            yield
            MoldProcess.new(setting, theirs, &@load).run
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

        # Forgets a mold that has ended.
        # @param mold [MoldHandle]
        # @return [void]
        def remove(mold)
          @all.delete(mold)
          mold.channel.close unless mold.channel_closed?
        end

        # @param mold [MoldHandle]
        # @return [void]
        def kill(mold)
          mold.kill
          remove(mold) unless mold.pid # there is no process whose end would be reported
        end

        # @return [void]
        def kill_all = @all.dup.each { |mold| kill(mold) }

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
