# frozen_string_literal: true

require "test_helper"
require "support/bundle"
require "support/served_process"
require_relative "support/cable_socket"

# Heddle::Cable, under Rails with actioncable-next.
module CableTests
  FOLDER = __dir__
  APPLICATION = File.join(FOLDER, "support/cable.ru")
  ROOM = CableSocket.identifier("RoomChannel", room: 7)

  def setup
    skip "needs the gems of #{gemfile}: bin/setup" unless self.class.installed?
    @sockets = []
  end

  def teardown
    @sockets&.each(&:close)
    @own&.stop
  end

  def self.included(test)
    def test.installed? = @installed ||= Bundle.installed?(new("").gemfile)
  end

  def gemfile = File.join(FOLDER, "bundles/rails_#{version.tr(".", "_")}/Gemfile")

  def command(*options) = [*ServedProcess::HEDDLE, "serve", "--bind", "127.0.0.1:0", *options, APPLICATION]

  def environment = Bundle.environment(gemfile).merge("RAILS_ENV" => "production", "HEDDLE_WORKERS" => "0")

  def served = @own || ServedProcess.shared(command, environment:, folder: FOLDER)

  # A server of this test's own.
  def serve(*options, **more)
    environment = self.environment.merge(more.transform_keys(&:to_s))
    @own = ServedProcess.new(command(*options), environment:, folder: FOLDER)
  end

  def connect(**)
    CableSocket.new(served.uri, **).tap { |socket| @sockets << socket }
  end

  # One that has its welcome.
  def client(**)
    connect(**).tap { |socket| assert_equal "welcome", socket.read["type"] }
  end

  def subscribed(identifier, **)
    client(**).tap { |socket| assert_equal "confirm_subscription", socket.subscribe(identifier)["type"] }
  end

  def broadcast(stream, message)
    Net::HTTP.post_form(served.at("/broadcast"), stream:, message: JSON.generate(message))
  end

  def test_what_a_channel_broadcasts_reaches_its_subscribers
    one, other = Array.new(2) { subscribed(ROOM) }
    one.perform(ROOM, "speak", text: "<b> ä")
    expected = { "identifier" => ROOM, "message" => { "text" => "<b> ä", "name" => "ada" } }

    assert_equal [expected, expected], [one.read, other.read]
  end

  def test_one_that_has_unsubscribed_gets_no_more
    one = subscribed(ROOM)
    one.command("unsubscribe", ROOM)
    other = CableSocket.identifier("RoomChannel", room: 8)
    one.subscribe(other)
    broadcast("room:7", "seven")
    broadcast("room:8", "eight")

    assert_equal({ "identifier" => other, "message" => "eight" }, one.read)
  end

  def test_subscriptions_of_one_stream_are_told_apart
    identifiers = [ROOM, CableSocket.identifier("RoomChannel", room: 7, other: true)]
    one = client
    identifiers.each { |identifier| one.subscribe(identifier) }
    broadcast("room:7", 1)

    assert_equal identifiers.sort, Array.new(2) { one.read["identifier"] }.sort
  end

  def test_clients_get_pings
    assert_kind_of Integer, client.ping["message"]
  end

  def test_who_is_rejected_is_told_not_to_come_back
    assert_equal({ "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }, connect(name: nil).read)
  end

  def test_foreign_origins_are_refused
    foreign = assert_raises(Heddle::WebSocket::HandshakeFailed) { connect(origin: "https://foe.example") }

    assert_equal 404, foreign.status
    client(origin: "https://friend.example")
  end
end

class CableOnRails81Test < Minitest::Test
  include CableTests

  def version = "8.1"
end

class CableOnRails72Test < Minitest::Test
  include CableTests

  def version = "7.2"
end
