# frozen_string_literal: true

require "test_helper"
require "support/served_process"

# Templates that several requests compile at once.
class TiltTest < Minitest::Test
  FILE = File.expand_path("tilt.ru", __dir__)

  def teardown = @served&.stop

  def test_templates_that_are_compiled_at_once_render_their_own_text
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", FILE, "-p", "0", "-b", "127.0.0.1",
                                 "--no-access-log", "--workers", "0"], environment: { "RACK_ENV" => "production" })
    bodies = Array.new(10) { |i| Thread.new { @served.get("/?template#{i}").body } }.map(&:value)

    assert_equal Array.new(10) { |i| "1 template#{i}" }, bodies
  end
end
