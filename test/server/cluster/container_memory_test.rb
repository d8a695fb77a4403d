# frozen_string_literal: true

require_relative "cluster_case"
require "support/memory_group"

# A server in a control group of its own, where this machine lets the tests make one.
class ClusterContainerMemoryTest < Minitest::Test
  include ClusterCase

  # Of 500 MiB, nine tenths are 450: beside the master there is room for the mold and a worker of about 170 MiB each. A
  # worker that grows then exceeds these 450, not the 500.
  LIMIT = 500 << 20
  APP = <<~RUBY
    LOADED = "x" * (150 << 20)
    run do |env|
      $kept = "x" * (280 << 20) if env["PATH_INFO"] == "/grow"
      [200, { "x-worker" => $$.to_s }, ["here"]]
    end
  RUBY

  if MemoryGroup.possible?
    def test_workers_fit_into_the_container_and_one_that_grows_is_replaced_before_the_kernel_ends_it
      write("config.ru", APP)
      MemoryGroup.within(LIMIT) do |group|
        serve("--control", "unix:control.sock", workers: "auto", within: group)

        assert_match(/ 1 worker \(auto: as many as fit into 450 MiB of memory; \d+ processors?\), one/, served.output)
        assert_equal LIMIT * 9 / 10, client.status[:master][:memory_limit]
        grown = served.get("/grow")["x-worker"].to_i
        wait_for(/replacing worker 0 \(pid #{grown}\): it uses \d+ MiB of memory, and all processes .* of 450 MiB/)
        wait_until("it does not end") { !alive?(grown) }

        refute_equal grown, worker
        refute_includes served.output, "SIGKILL"
      ensure
        served&.stop
      end
    end
  end
end
