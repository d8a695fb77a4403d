# frozen_string_literal: true

require_relative "cluster_case"

# A worker that grows is replaced, with a line that says why. It waits for the master's check, which comes every ten
# seconds, and computes nothing meanwhile.
class ClusterMemoryLimitTest < Minitest::Test
  include ClusterCase

  # Far above what an empty worker uses, and far below what it has when it has grown.
  LIMIT = "150M"
  APP = <<~RUBY
    run do |env|
      $kept = "x" * 250_000_000 if env["PATH_INFO"] == "/grow"
      [200, { "x-worker" => $$.to_s }, ["code 1"]]
    end
  RUBY

  def test_a_worker_that_grows_is_replaced_before_it_ends_and_the_log_says_why
    skip "this system does not tell how much memory a process uses" unless File.exist?("/proc/self/smaps_rollup")
    write("config.ru", APP)
    serve("--worker-memory-limit", LIMIT)
    wait_until { workers }
    load = self.load(kept: 1, fresh: 1)
    grown = served.get("/grow")["x-worker"].to_i
    wait_for(/replacing worker \d \(pid #{grown}\): it uses \d+ MiB .* \(its limit is worker_memory_limit, 150 MiB,/)
    wait_until("it does not end") { !alive?(grown) }
    load.stop

    assert_empty load.failures
    assert_operator served.output[/uses (\d+) MiB/, 1].to_i, :>, 150
    assert_equal 1, said("replacing worker")
    refute_includes workers, grown
  end
end
