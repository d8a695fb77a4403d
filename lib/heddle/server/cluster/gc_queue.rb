# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Lets the workers run their major garbage collections one at a time, so that the others accept requests.
      class GCQueue
        def initialize
          @waiting = []
          @current = nil
        end

        # @param worker [WorkerHandle] one that wants to collect garbage
        # @return [void]
        def request(worker)
          @waiting |= [worker]
        end

        # @param worker [WorkerHandle] one that has collected
        # @return [void]
        def finish(worker)
          @current = nil if @current.equal?(worker)
        end

        # Lets the next worker collect, if none does. A worker that ends needs no collection.
        # @return [void]
        def start_next
          @current = nil unless @current&.serving?
          @waiting.select!(&:serving?)
          return if @current || @waiting.empty?

          @current = @waiting.shift
          @current.channel.send_message("collect_garbage")
        end
      end
    end
  end
end
