# frozen_string_literal: true

require "test_helper"
require "securerandom"
require_relative "served_example"
require "support/private_postgresql"
require_relative "support/board"

# Action Cable of examples/rails_postgresql: its own event loop and web sockets, on connections that it takes over.
class RailsCableTest < Minitest::Test
  include Board

  def setup
    need_board
    require_relative "support/cable_client"
    @served = board("production")
    @clients = []
  end

  def teardown = @clients&.each(&:close)

  def client = CableClient.new(@served.uri).tap { |one| @clients << one }

  def test_twenty_clients_are_told_of_a_note
    clients = Array.new(20) { client.tap { |one| one.subscribe("NotesChannel") } }
    text = "seen #{SecureRandom.hex(4)}"
    answer = Net::HTTP.post_form(@served.at("/notes"), "text" => text)

    assert_equal "201", answer.code, @served.output
    clients.each do |one|
      assert_equal text, one.message { |message| message["identifier"] && message["message"] }.dig("message", "text")
    end
  end

  def test_a_channel_asks_the_database
    one = client
    one.subscribe("NotesChannel")
    one.perform("NotesChannel", "count")

    assert_kind_of Integer, one.message { |message| message.dig("message", "count") }.dig("message", "count")
  end

  def test_web_sockets_do_not_hold_up_requests_and_close_in_order
    one = client
    codes = []
    seconds = @served.all_at_once(5, "/slow?seconds=2") { |answer| codes << answer.code }

    assert_equal ["200"], codes.uniq
    assert_operator seconds, :<, 9, "one after the other they would take 10"
    one.leave
  end
end
