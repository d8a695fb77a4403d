# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Starts molds, and lists the present ones: usually one, and two during a reload. A mold is a process that has
      # loaded the application, and that workers are forked from. A mold can be forked from a worker, too.
      class MoldSpawner
        include Enumerable

        # @param load [#call] called in the mold to load the application; returns it, or raises BootError
        # @param clock [#call] returns the time in seconds
        def initialize(load, clock)
          @load = load
          @clock = clock
          @all = []
          @generation = 0
        end

        # Asks a worker to fork a mold at its end: after the master has retired the worker, and its last request has
        # ended.
        # @param worker [WorkerHandle]
        # @return [MoldHandle]
        # @raise [SystemCallError] when no descriptor is free
        def promote_worker(worker)
          ours, theirs = MessageSocket.pair
          worker.channel.send_message("become_mold", io: theirs.io)
          add(nil, ours, worker.mold.configuration)
        ensure
          theirs&.close
        end

        # Forks a mold, which loads the application.
        # @param setting [Worker::Setting]
        # @yield in the new process, to close the resources that only the master uses
        # @return [MoldHandle]
        # @raise [SystemCallError] when no process can be forked, or no descriptor is free
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

        # @return [Boolean] whether there are no molds
        def empty? = @all.empty?

        # Removes a mold that has ended.
        # @param mold [MoldHandle]
        # @return [void]
        def remove(mold)
          @all.delete(mold)
          mold.channel.close unless mold.channel_closed?
        end

        # Kills a mold that is no longer needed.
        # @param mold [MoldHandle]
        # @return [void]
        def kill(mold)
          mold.kill
          remove(mold) unless mold.pid # otherwise it is removed when its process has ended
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
