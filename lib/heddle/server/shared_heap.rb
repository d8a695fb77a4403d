# frozen_string_literal: true

module Heddle
  class Server
    # Packs Ruby's heap before the fork of processes that share it.
    #
    # `Process.warmup` compacts the heap and returns the empty pages. After one compaction, a third of the slots is
    # still free on Ruby 3.4, and hardly any on 3.3. Workers fill free slots first, and their first write to a page
    # makes the kernel copy it. So the heap is compacted again as long as that empties pages. Gaps between malloc's
    # blocks have the same effect, and are filled.
    module SharedHeap
      # A compaction that empties a smaller share of the pages is the last one.
      GAIN = 0.02
      # Compactions at most.
      MOST = 8
      private_constant :GAIN, :MOST

      # @param warm_up [#call] compacts once
      # @param pages [#call] how many pages Ruby's heap has
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
