# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Which worker makes its major garbage collection now: one at a time, so that the others accept what is new.
      class CollectionTurns
        def initialize
          @waiting = []
          @current = nil
        end

        # @param worker [WorkerHandle] one that wants its turn
        # @return [void]
        def ask(worker)
          @waiting |= [worker]
        end

        # @param worker [WorkerHandle] one that has had its turn
        # @return [void]
        def done(worker)
          @current = nil if @current.equal?(worker)
        end

        # Gives the next worker its turn, if none has it. A worker that ends has none, and needs none.
        # @return [void]
        def proceed
          @current = nil unless @current&.serving?
          @waiting.select!(&:serving?)
          return if @current || @waiting.empty?

          @current = @waiting.shift
          @current.channel.send_message("collect")
        end
      end
    end
  end
end
