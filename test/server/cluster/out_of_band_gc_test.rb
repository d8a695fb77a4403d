# frozen_string_literal: true

require_relative "cluster_case"

# Major garbage collections are made between requests, and by one worker at a time.
class ClusterOutOfBandGCTest < Minitest::Test
  include ClusterCase

  # On /grow keeps objects until Ruby would make a major collection, on /churn until it makes one, if it may. Says how
  # many there were meanwhile.
  APP = <<~RUBY
    MAJOR = -> { GC.stat(:major_gc_count) }
    run do |env|
      before = MAJOR.call
      case env["PATH_INFO"]
      when "/grow"
        ($kept ||= []) << Array.new(20_000) { "x" * 50 } until GC.latest_gc_info(:need_major_by) || MAJOR.call > before
      when "/churn"
        100.times { MAJOR.call > before ? break : Array.new(20_000) { "x" * 50 } }
      end
      [200, { "x-worker" => $$.to_s, "x-major" => (MAJOR.call - before).to_s }, ["code 1"]]
    end
  RUBY

  def runs = metrics.fetch("heddle_out_of_band_gc_runs_total", {}).values

  if Heddle::Server::OutOfBandGC.available?
    def test_no_request_waits_for_a_major_collection_that_its_worker_can_make_later
      write("config.ru", APP)
      serve("--out-of-band-gc", "--control", "unix:control.sock")
      wait_until("one worker has not collected") { grow && runs.sum.positive? }

      wait_until("the other one has not collected") { grow && runs.all?(&:positive?) }
    end

    def test_full_collections_that_nothing_starts_are_reported_once
      write("config/heddle.rb", "worker_boot { GC.config(rgengc_allow_full_mark: false) }\n")
      serve
      wait_for("full garbage collections are off (GC.config)")
      write("config/heddle.rb", "worker_boot { GC.config(rgengc_allow_full_mark: false) }\nout_of_band_gc true\n")
      signal("HUP")
      wait_for("reloaded: 2")

      assert_equal 1, said("full garbage collections are off")
    end

    def test_past_the_growth_that_is_allowed_ruby_collects_by_itself
      write("config.ru", <<~RUBY)
        require "#{File.expand_path("../../support/constants", __dir__)}"
        Constants.set(Heddle::Server::OutOfBandGC, :GROWTH, 1 << 20)
        #{APP}
      RUBY
      serve("--out-of-band-gc", "--control", "unix:control.sock")
      wait_until("nothing is said") { served.get("/grow") && said("Ruby makes the next one by itself").positive? }
      wait_until("no major collection has run") { served.get("/churn")["x-major"] != "0" }
    end
  else
    def test_a_ruby_without_out_of_band_gc_is_reported_at_boot
      error = assert_raises(RuntimeError) { serve("--out-of-band-gc") }

      assert_match(/out_of_band_gc \(--out-of-band-gc\) needs Ruby 3.4 or newer/, error.message)
    end
  end

  private

  # In none of these requests does a major collection run.
  def grow
    response = served.get("/grow")
    assert_equal "0", response["x-major"]
    response
  end
end
