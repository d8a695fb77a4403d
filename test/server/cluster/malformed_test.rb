# frozen_string_literal: true

require_relative "cluster_case"

# Bytes between the server's processes that are no message, such as a stray write to a reused descriptor.
class ClusterMalformedTest < Minitest::Test
  include ClusterCase

  # Writes what the query says to the master.
  STRAY = <<~RUBY
    require "uri"
    run do |env|
      if env["PATH_INFO"] == "/stray"
        channel = ObjectSpace.each_object(Heddle::Server::Cluster::MessageSocket).find { |one| !one.io.closed? }
        channel.io.send(URI.decode_www_form_component(env["QUERY_STRING"]), 0)
      end
      [200, { "x-worker" => $$.to_s }, ["code 1"]]
    end
  RUBY

  MESSAGES = ["no json", '["answer", null]', '["answer", {"id": [1]}]', '["totals", {}]', '["ready", {"selector": 7}]',
              '["unknown", {}]', "\xFF\0", '["ready", []]'].freeze

  def test_the_master_survives_whatever_a_worker_sends
    write("config.ru", STRAY)
    serve("--control", "unix:control.sock", workers: 1)
    pid = worker
    MESSAGES.each { |text| served.get("/stray?#{URI.encode_www_form_component(text)}") }
    wait_for(/ignoring a malformed message from worker 0 \(pid #{pid}\): 7 bytes that begin with "no json"$/)
    signal("KILL", pid)
    wait_for(/starting another now$/)

    assert_equal served.pid, master
    assert_equal 1, said("ignoring a malformed message")
    refute_equal pid, worker
  end
end
