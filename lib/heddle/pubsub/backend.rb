# frozen_string_literal: true

require "securerandom"
require "uri"

module Heddle
  module PubSub
    # Redis or PostgreSQL as the service that gives messages their offsets, so that several machines share topics. This
    # process publishes to it over one connection. A second connection copies all messages into the history.
    #
    # @api private
    class Backend
      Autoloads.add(self, "heddle/pubsub/backend")

      # Raised when the connection has failed; a new one may work.
      class LostError < OwnError; end

      # Raised when the backend has begun another epoch.
      class EpochChangedError < OwnError; end

      # The state of a backend.
      #
      # @!attribute epoch [String]
      # @!attribute count [Integer] the last message's offset
      # @!attribute oldest [Integer] the offset of the oldest message of this epoch that it still has
      State = Data.define(:epoch, :count, :oldest)

      # A message of the backend.
      Stored = Data.define(:epoch, :offset, :topic, :data)

      # By the scheme of the address: the connection's class and the gem that it needs.
      SCHEMES = { "redis" => [:RedisConnection, "redis-client"], "rediss" => [:RedisConnection, "redis-client"],
                  "postgres" => [:PostgresqlConnection, "pg"], "postgresql" => [:PostgresqlConnection, "pg"] }.freeze
      NAME = /\A[a-z_][a-z0-9_]{0,39}\z/
      # The parameter `name` of an address; it is removed, because the drivers don't know it.
      NAMED = /(?<before>[?&])name=(?<name>[^&]*)(?:&|\z)/
      # Letters of an epoch.
      LETTERS = [*"a".."z", *"2".."7"].freeze
      private_constant :SCHEMES, :NAME, :NAMED, :LETTERS
      # The form of all epochs.
      EPOCH = /\A[a-z2-7]{12}\z/

      # @return [String] an epoch that no server has used
      def self.new_epoch = Array.new(12) { LETTERS[SecureRandom.random_number(LETTERS.size)] }.join

      # @return [String] the address without its password
      attr_reader :to_s

      # @param url [String] "redis://…", "rediss://…", "postgres://…" or "postgresql://…". Its parameter `name` names
      #   the stream or the tables, for applications that share a backend
      # @param stored [Integer] how many messages of all topics it keeps
      # @raise [ArgumentError]
      def initialize(url, stored: 10_000)
        @kind, @gem = SCHEMES.fetch(url[/\A[a-z]+(?=:)/]) do
          raise ArgumentError, "#{PrintableText.url(url).inspect} is not an address of a backend. Accepted are " \
                               "redis:// and rediss:// for Redis, postgres:// and postgresql:// for PostgreSQL, " \
                               "such as \"redis://localhost:6379/1\" or \"postgres://user@host/database\". Leave " \
                               "the setting out to use this server's memory"
        end
        @name = url[NAMED, :name] || "heddle_pubsub"
        unless NAME.match?(@name)
          raise ArgumentError, "the name must consist of at most 40 lowercase letters, digits and _, but is " \
                               "#{@name.inspect}"
        end

        @url = url.sub(NAMED, '\k<before>').sub(/[?&]\z/, "")
        @stored = stored
        @to_s = PrintableText.url(url)
        @lock = Thread::Mutex.new
        @publisher = @follower = nil
      end

      # @return [RedisConnection, PostgresqlConnection] a new connection
      # @raise [LostError]
      # @raise [UnreachableError] when its gem is missing
      def connect
        load_gem
        Backend.const_get(@kind).new(@url, @name, @stored)
      end

      # @raise [UnreachableError] when it is missing
      # @return [void]
      def load_gem
        require @gem
      rescue LoadError
        raise UnreachableError, "#{self} needs the gem #{@gem}: add it to the Gemfile"
      end

      # @param topic [String]
      # @param data [String]
      # @return [String] the position
      # @raise [UnreachableError] when the backend has not confirmed it in time
      def publish(topic, data)
        size = topic.bytesize + data.bytesize
        raise ArgumentError, "the topic has #{topic.bytesize} bytes, the limit is 1024" if topic.bytesize > 1024
        if size > History.largest
          raise ArgumentError, "the message is too large: its data has #{data.bytesize} bytes, and data and topic " \
                               "together may have #{History.largest} (see pubsub_memory)"
        end

        publisher.publish(topic, data)
      end

      # Lets the history of this process, and of those that share it, follow the backend from now on.
      # @param patience [Numeric] seconds to wait for the first answer, counted from the first call
      # @param report [#call] called with each event
      # @return [Boolean] whether the history has all messages of the backend
      def follow(patience = 5, report: Events.method(:report))
        History.open
        @lock.synchronize { @follower ||= Follower.new(self, report) }
        @follower.wait(patience)
      end

      # Like {follow}, unless a process that this one was forked from does it.
      # @return [Boolean]
      def follow_here
        follower = @lock.synchronize { @follower }
        follower && follower.pid != Process.pid ? true : follow
      end

      private

      # A forked process has its own.
      def publisher
        @lock.synchronize do
          @publisher = Publisher.new(self) unless @publisher&.pid == Process.pid
          @publisher
        end
      end
    end
  end
end
