# frozen_string_literal: true

# test: nightly

require_relative "cluster_case"

# The number of workers has no upper bound.
class ManyWorkersTest < Minitest::Test
  include ClusterCase

  WORKERS = 64

  def indexes = client.status[:workers].filter_map { |worker| worker[:index] if worker[:pid] }

  def test_64_workers_serve_reload_and_stop
    serve("--control", "unix:control.sock", workers: WORKERS)
    wait_until("not all workers serve") { indexes.sort == [*0...WORKERS] }

    assert_equal "code 1", served.get("/").body
    write("config.ru", APP.sub("code 1", "code 2"))
    signal("HUP")
    wait_for("reloaded: #{WORKERS} workers serve the new code")

    assert_equal "code 2", served.get("/").body
    assert_predicate served.stop, :success?, served.output
  end
end
