# frozen_string_literal: true

# Computes in a thread beside the requests.
class CacheWarmer
  def warm(seconds)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    Thread.new { compute while Process.clock_gettime(Process::CLOCK_MONOTONIC) < limit }
  end

  private

  def compute
    (1..20_000).sum { |number| number.to_s.hash % 7 } # culprit: thread
  end
end
