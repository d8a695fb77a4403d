# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock"
require_relative "../../../benchmark/support/bench"
require_relative "../../../benchmark/http/application"

class HTTPBenchmarkApplicationTest < Minitest::Test
  Application = Bench::Application

  def test_every_answer_is_what_rack_wants
    { "/hello" => Application::HELLO, "/json" => JSON.generate(Application::JSON_OBJECT),
      "/12k" => Application::BODY_12K, "/12m" => Application::BODY_12M, "/sleep/0.1" => Application::HELLO }
      .each do |path, body|
        answer = request.get(path)

        assert_equal [200, body.bytesize], [answer.status, answer.body.bytesize], path
      end
  end

  def test_bodies_have_the_sizes_that_the_rows_name
    assert_equal 12 * 1_024, Application::BODY_12K.bytesize
    assert_equal 12 * 1_024 * 1_024, Application::BODY_12M.bytesize
    assert_equal 10, Application::JSON_HEADERS.size
  end

  def test_an_upload_is_answered_with_its_length
    assert_equal "65536\n", request.post("/upload", input: "x" * 65_536).body
    assert_equal "0\n", request.post("/upload").body
  end

  def test_a_stream_is_written_piece_by_piece_and_closed
    written = []
    closed = false
    stream = Object.new
    stream.define_singleton_method(:write) { |text| written << text }
    stream.define_singleton_method(:close) { closed = true }
    body = Application.new.call(Rack::MockRequest.env_for("/stream")).last
    body.call(stream)

    assert_equal [Application::LINE] * 99, written
    assert closed
  end

  def test_an_unknown_path_is_not_found
    assert_equal 404, request.get("/").status
  end

  private

  def request = Rack::MockRequest.new(Rack::Lint.new(Application.new))
end
