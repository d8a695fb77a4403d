# frozen_string_literal: true

require "securerandom"
require "uri"

module Heddle
  module PubSub
    # A service (Redis or PostgreSQL) by which several machines share topics. It assigns the offsets of messages. A
    # {Publisher} publishes over one connection. Over another one, a {Follower} copies all messages into the history,
    # the shared memory that subscribers read.
    #
    # @api private
    class Backend
      Autoloads.add(self, "heddle/pubsub/backend")

      # Raised when the connection has failed; a new connection may work.
      class LostError < OwnError; end

      # Raised when the backend has begun a new epoch (a new numbering of messages).
      class EpochChangedError < OwnError; end

      # The state of a backend. Its epoch identifies one numbering of messages.
      #
      # @!attribute epoch [String]
      # @!attribute count [Integer] the offset of the last message
      # @!attribute oldest [Integer] the offset of the oldest stored message of this epoch; `count` + 1 if there is none
      State = Data.define(:epoch, :count, :oldest)

      # A message stored in the backend.
      Stored = Data.define(:epoch, :offset, :topic, :data)

      # scheme of the address => the connection's class, and the gem that it needs
      SCHEMES = { "redis" => [:RedisConnection, "redis-client"], "rediss" => [:RedisConnection, "redis-client"],
                  "postgres" => [:PostgresqlConnection, "pg"], "postgresql" => [:PostgresqlConnection, "pg"] }.freeze
      NAME = /\A[a-z_][a-z0-9_]{0,39}\z/
      # The parameter `name` of an address. It is removed, because the drivers would reject it.
      NAMED = /(?<before>[?&])name=(?<name>[^&]*)(?:&|\z)/
      # The characters of an epoch.
      LETTERS = [*"a".."z", *"2".."7"].freeze
      private_constant :SCHEMES, :NAME, :NAMED, :LETTERS
      # The format of an epoch.
      EPOCH = /\A[a-z2-7]{12}\z/

      # @return [String] a new random epoch
      def self.new_epoch = Array.new(12) { LETTERS[SecureRandom.random_number(LETTERS.size)] }.join

      # @return [String] the address without user name and password
      attr_reader :to_s

      # @param url [String] "redis://…", "rediss://…", "postgres://…" or "postgresql://…". Its parameter `name` is the
      #   prefix of the keys or tables, so that several applications can share a backend
      # @param stored [Integer] number of messages of all topics that the backend keeps
      # @raise [ArgumentError]
      def initialize(url, stored: 10_000)
        @kind, @gem = SCHEMES.fetch(url[/\A[a-z]+(?=:)/]) do
          raise ArgumentError, "#{PrintableText.url(url).inspect} is not an address of a pub/sub backend. Accepted " \
                               "are redis:// and rediss:// for Redis, postgres:// and postgresql:// for PostgreSQL, " \
                               "such as \"redis://localhost:6379/1\" or \"postgres://user@host/database\". Omit " \
                               "the setting to use this server's memory"
        end
        @name = url[NAMED, :name] || "heddle_pubsub"
        unless NAME.match?(@name)
          raise ArgumentError, "the parameter `name` of the pub/sub backend's address is #{@name.inspect}, but must " \
                               "have at most 40 lowercase letters, digits and _, and not begin with a digit"
        end

        @url = url.sub(NAMED, '\k<before>').sub(/[?&]\z/, "")
        @stored = stored
        @to_s = PrintableText.url(url)
        @lock = Thread::Mutex.new
        @publisher = @follower = nil
      end

      # @return [RedisConnection, PostgresqlConnection] a new connection
      # @raise [LostError]
      # @raise [UnreachableError] when its gem is not installed
      def connect
        load_gem
        Backend.const_get(@kind).new(@url, @name, @stored)
      end

      # Loads the gem that the backend needs.
      # @raise [UnreachableError] when the gem is not installed
      # @return [void]
      def load_gem
        require @gem
      rescue LoadError
        raise UnreachableError, "#{self} needs the gem #{@gem}: add it to the Gemfile"
      end

      # Publishes a message, and waits until the backend has confirmed it.
      # @param topic [String]
      # @param data [String]
      # @return [String] the message's position
      # @raise [UnreachableError] when the backend has not confirmed it in time
      def publish(topic, data)
        size = topic.bytesize + data.bytesize
        raise ArgumentError, "the topic has #{topic.bytesize} bytes, the limit is #{History::TOPIC_LIMIT}" if
          topic.bytesize > History::TOPIC_LIMIT
        if size > History.largest
          raise ArgumentError, "the message is too large: its data has #{data.bytesize} bytes, and data and topic " \
                               "together may have #{History.largest} (see pubsub_memory)"
        end

        publisher.publish(topic, data)
      end

      # Starts to copy the backend's messages into the history, which this process and its child processes share.
      # @param patience [Numeric] maximum seconds to wait until the copy is complete, counted from the first call
      # @param report [#call] called with each event
      # @return [Boolean] whether the history contains all messages that the backend had at the start
      def follow(patience = 5, report: Events.method(:report))
        History.open
        @lock.synchronize { @follower ||= Follower.new(self, report) }
        @follower.wait(patience)
      end

      # Like {follow}, but does nothing if a parent process already copies the messages.
      # @return [Boolean]
      def follow_here
        follower = @lock.synchronize { @follower }
        follower && follower.pid != Process.pid ? true : follow
      end

      private

      # A forked process gets its own publisher.
      def publisher
        @lock.synchronize do
          @publisher = Publisher.new(self) unless @publisher&.alive?
          @publisher
        end
      end
    end
  end
end
