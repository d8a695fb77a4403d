# frozen_string_literal: true

require "test_helper"
require "json"
require "support/served_process"

# OpenTelemetry's span of a request has its time account.
class OpenTelemetryTest < Minitest::Test
  FILE = File.expand_path("open_telemetry.ru", __dir__)
  GEM_PATHS = File.expand_path("../../bin/support/gem_paths", __dir__)

  def teardown = @served&.stop

  def spans(*flags)
    skip "needs the gem opentelemetry-sdk: bin/setup" if Gem::Specification.find_all_by_name("opentelemetry-sdk").empty?
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", FILE, "-p", "0", "-b", "127.0.0.1", "-w", "0",
                                 "--control", "off", *flags],
                                environment: { "RUBYOPT" => "#{ENV.fetch("RUBYOPT", "")} -r#{GEM_PATHS}" })
    @served.get("/")
    JSON.parse(@served.get("/spans").body)
  end

  def test_span_of_a_request_has_the_parts_of_its_account
    %w[fiber thread].each do |mode|
      spans = self.spans("--mode", mode)
      found = spans.fetch("request")
      parts = found.filter_map { |name, value| value if name.match?(/\Aheddle\.account\.(?!total|proxy)/) }

      assert_operator found.fetch(mode == "fiber" ? "heddle.account.sleep" : "heddle.account.thread"), :>=, 0.049
      assert_in_delta found.fetch("heddle.account.total"), parts.sum, 1e-6
      assert_equal 1, found["own"]
      assert_empty spans.fetch("inner") || {}
      assert_match(/^Adapted:.* opentelemetry-sdk 1/, @served.output)
      @served.stop
    end
  end

  def test_it_has_none_where_the_adaptation_is_left_out
    assert_equal ["own"], spans("--adapt", "async").fetch("request").keys
  end
end
