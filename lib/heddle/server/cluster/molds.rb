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
          mold = MoldHandle.new(pid:, channel: ours, generation: @generation += 1,
                                configuration: setting.configuration, now: @clock.call)
          @all << mold
          mold
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

        # @return [void]
        def end_all = each(&:end!)
      end
    end
  end
end
