# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's record of a worker.
      class WorkerHandle
        # @return [Integer] its number, as people know it; that of the one that it replaces
        attr_reader :index
        # @return [Integer] among the reserve workers, counted from 1; 0: it is none
        attr_reader :rank
        # @return [Integer] of the scoreboard
        attr_reader :slot
        # @return [MessageSocket] to it
        attr_reader :channel
        # @return [MoldHandle] the mold that forked it
        attr_reader :mold
        # @return [WorkerHandle, nil] the worker that ends as soon as this one serves; nil from then on, when the death
        #   of this one is no failure to replace it
        attr_reader :replaces
        # @return [Float] when it was asked for
        attr_reader :born
        # @return [Integer, nil] once it is known
        attr_accessor :pid
        # @return [Symbol] :coming, :serving or :ending
        attr_accessor :state
        # @return [Float] when it last said something
        attr_accessor :heard
        # @return [Boolean] whether it accepts connections, or is going to; an ending worker does so until it reports
        #   otherwise
        attr_accessor :accepting
        # @return [Boolean] whether it will say nothing any more
        attr_accessor :silent
        # @return [Float, nil] when it is killed if it has not ended by itself
        attr_accessor :deadline
        # @return [String, nil] why the master has ended it, after its name
        attr_accessor :reason

        def initialize(index:, slot:, channel:, mold:, replaces:, now:, rank: 0)
          @index = index
          @rank = rank
          @slot = slot
          @channel = channel
          @mold = mold
          @replaces = replaces
          @born = @heard = now
          @state = :coming
          @accepting = true
          @questions = {}
          @asked = 0
          @malformed = false
        end

        # It accepts requests.
        # @return [WorkerHandle, nil] the one that it replaces
        def serve
          @state = :serving
          replaced = @replaces
          @replaces = nil
          replaced
        end

        # @return [Boolean]
        def serving? = state == :serving

        # @return [Boolean]
        def ending? = state == :ending

        # @return [Boolean]
        def reserve? = rank.positive?

        # @return [String]
        def name = "#{"reserve " if reserve?}worker #{index}#{" (pid #{pid})" if pid}"

        # Sends the process a question. The block gets the answer, or nil if the process ends before.
        # @param what [String] see {Worker#on}
        # @param arguments [Object] as JSON
        # @yieldparam answer [Object, nil]
        # @return [void]
        def ask(what, arguments = nil, &block)
          @questions[@asked += 1] = block
          answered(@asked, nil) unless channel.send_message("ask", id: @asked, what:, arguments:)
        end

        # @param id [Integer]
        # @param answer [Object]
        # @return [void]
        def answered(id, answer) = @questions.delete(id)&.call(answer)

        # It has sent what is no message.
        # @yield for the first one only: a log that repeats it would fill a disk
        # @return [void]
        def malformed
          yield unless @malformed
          @malformed = true
        end

        # It is gone.
        # @return [void]
        def close
          channel.close
          @questions.keys.each { |id| answered(id, nil) } # rubocop:disable Style/HashEachMethods
        end

        # @param name [String] a signal
        # @return [void]
        def kill(name)
          Process.kill(name, pid) if pid
        rescue Errno::ESRCH
          # It has ended by itself.
        end
      end
    end
  end
end
