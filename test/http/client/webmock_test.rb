# frozen_string_literal: true

require "test_helper"
require_relative "support/client_case"
require "webmock"
require "heddle/http/webmock"

class WebMockTest < ClientCase
  include WebMock::API

  def setup
    Heddle::HTTP::WebMockAdapter.enable!
    WebMock.disable_net_connect!
  end

  def teardown
    WebMock.reset!
    WebMock.reset_callbacks
    WebMock.allow_net_connect!
    Heddle::HTTP::WebMockAdapter.disable!
    super
  end

  def test_a_stub_answers
    stub_request(:post, "https://api.example/x").with(body: "b", headers: { "X-A" => "1" })
                                                .to_return(status: 201, body: "made", headers: { "X-B" => "2" })
    response = Client.new("https://api.example").post("/x", body: "b", headers: { "X-A" => "1" })

    assert_equal [201, "made", "2"], [response.status, response.body, response["x-b"]]
    assert_requested(:post, "https://api.example/x", times: 1)
  end

  def test_streams_and_redirects_are_stubbed
    stub_request(:get, "http://a.example/").to_return(status: 302, headers: { "Location" => "http://b.example/" })
    stub_request(:get, "http://b.example/").to_return(body: "there")

    assert_equal "there", Heddle::HTTP.get("http://a.example/").body
    assert_equal(%w[there], Client.default.stream(:get, "http://b.example/") { |response| response.each.to_a })
  end

  def test_a_request_without_a_stub_is_not_sent
    assert_raises(WebMock::NetConnectNotAllowedError) { Heddle::HTTP.get("http://nobody.invalid/") }
  end

  def test_stubs_may_time_out_and_raise
    stub_request(:get, "http://a.example/").to_timeout.then.to_raise(Client::ConnectionLostError)

    assert_raises(Client::ConnectTimeoutError) { Heddle::HTTP.get("http://a.example/") }
    assert_raises(Client::ConnectionLostError) { Heddle::HTTP.get("http://a.example/") }
  end

  def test_real_requests_where_they_are_allowed
    WebMock.allow_net_connect!
    server = serve { |socket, _| socket.write(hello) }

    assert_equal "hello", Heddle::HTTP.get(server.url).body
  end

  def test_callbacks_get_real_responses_with_their_bodies
    WebMock.allow_net_connect!
    server = serve { |socket, _| socket.write(hello) }
    seen = []
    WebMock.after_request(real_requests_only: true) { |request, response| seen << [request.method, response] }
    Heddle::HTTP.get(server.url)
    Client.default.stream(:get, server.url) { |response| response.each.to_a }

    assert_equal([[:get, 200, "hello"]] * 2, seen.map { |name, response| [name, response.status[0], response.body] })
    assert_equal "5", seen.last.last.headers["Content-Length"]
  end

  def test_callbacks_for_real_requests_are_not_called_for_stubs
    seen = []
    WebMock.after_request(real_requests_only: true) { seen << :real }
    WebMock.after_request { seen << :any }
    stub_request(:get, "http://a.example/").to_return(body: "stubbed")
    Heddle::HTTP.get("http://a.example/")

    assert_equal [:any], seen
  end
end
