# frozen_string_literal: true

# test: each mode

require "test_helper"
require "server/server_helpers"
require "open3"
require "rack"

# In Rack 2 each line of a header's value is a value; in Rack 3 a line end is an error.
class HeaderLinesTest < Minitest::Test
  include ServerHelpers

  APP = ->(_env) { [200, { "content-type" => "text/plain", "set-cookie" => "a=1\nb=2" }, ["cookies"]] }
  PROTOCOLS = %w[--http1.1 --http2-prior-knowledge].freeze

  # @return [Array<String>] of all responses
  def cookies(protocol, status)
    output, = Open3.capture2e("curl", "-sSi", protocol, "http://127.0.0.1:#{port}/")

    assert_match(%r{\AHTTP/[\d.]+ #{status}}, output)
    output.scan(/^set-cookie: (.*)\r$/).flatten
  end

  def with_release(release)
    original = Rack.method(:release)
    Rack.define_singleton_method(:release) { release }
    yield
  ensure
    Rack.define_singleton_method(:release, original)
    Heddle::Native.lines_are_values = false
  end

  [{ mode: :fiber }, { mode: :thread }, { mode: :single }].each do |options|
    define_method("test_each_line_is_a_field_with_rack_2_on_both_protocols_in_mode_#{options[:mode]}") do
      with_release("2.2.0") do
        serving(APP, lint: false, **options) do
          PROTOCOLS.each { |protocol| assert_equal %w[a=1 b=2], cookies(protocol, 200) }
        end
      end
    end

    define_method("test_line_end_is_an_error_with_rack_3_on_both_protocols_in_mode_#{options[:mode]}") do
      serving(APP, lint: false, **options) do
        PROTOCOLS.each { |protocol| assert_empty cookies(protocol, 500) }
      end
      assert_match(/pass several values of a header as an Array/, errors.string)
    end
  end

  def test_early_hints_of_rack_2_have_a_field_for_each_line
    app = lambda do |env|
      env["rack.early_hints"].call("link" => "</a>; rel=preload\n</b>; rel=preload")
      [200, {}, ["x"]]
    end
    with_release("2.2.0") do
      serving(app, lint: false, early_hints: :always) do
        assert_includes exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
                        "link: </a>; rel=preload\r\nlink: </b>; rel=preload\r\n"
      end
    end
  end

  def test_other_control_characters_are_an_error_with_older_rack
    with_release("2.2.0") do
      serving(->(_env) { [200, { "x" => "a\nb\rc" }, ["x"]] }, lint: false) do
        assert_equal "500", get("/").code
      end
    end
  end
end
