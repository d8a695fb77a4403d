# frozen_string_literal: true

module Heddle
  class Server
    # Compacts Ruby's heap before workers are forked, so that they share more of its memory.
    #
    # `Process.warmup` compacts the heap and returns the empty pages. On Ruby 3.4, a third of the slots is still free
    # after one compaction; on 3.3 hardly any is. Free slots waste shared memory: workers put new objects there first,
    # and the first write to a page makes the kernel copy it. So the heap is compacted again as long as each compaction
    # empties pages. Gaps between malloc's blocks have the same effect, so they are filled.
    module SharedHeap
      # When a compaction empties less than this share of the pages, no further one follows.
      GAIN = 0.02
      # Maximum number of compactions.
      MOST = 8
      private_constant :GAIN, :MOST

      # @param warm_up [#call] compacts once
      # @param pages [#call] returns the number of pages of Ruby's heap
      # @param fill [#call] fills malloc's gaps
      # @return [void]
      def self.pack(warm_up: Process.method(:warmup), pages: -> { GC.stat(:heap_allocated_pages) },
                    fill: Native::Processes.method(:fill_heap_gaps))
        before = pages.call
        MOST.times do
          warm_up.call
          now = pages.call
          break if before - now < before * GAIN

          before = now
        end
        fill.call
      end
    end
  end
end
