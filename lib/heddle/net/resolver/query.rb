# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # One question to a name server (RFC 1035, section 4.1). Frozen.
      #
      # Query and reply are {DNS::Message}s. Ruby's library resolv is not used, because in Ruby 3.3 it can't read
      # messages in a Ractor, follows compression pointers without a limit (CVE-2025-24294), and defines a class for
      # each unknown record type that a server sends.
      #
      # @api private
      class Query
        RECURSION_DESIRED = 0x0100
        # Maximum number of answers to read from a response to a question for addresses. More are not needed, and
        # reading 64 KiB takes 50 ms.
        MAX_ADDRESSES = 512

        attr_reader :question, :id, :bytes, :max_answers

        # @param question [DNS::Question]
        # @param except [Integer, nil] the id of another question on the same socket, which this question must not have
        # @param flags [Integer] the header's flags
        # @param edns [DNS::EDNS, nil] nil: without EDNS
        # @param max_answers [Integer, nil] maximum number of answers to read from the reply; nil: all
        def initialize(question, except: nil, flags: RECURSION_DESIRED, edns: DNS::EDNS.of, max_answers: nil)
          @question = question
          @flags = flags
          @edns = edns
          @except = except
          @max_answers = max_answers
          # A random number from the kernel, so that an attacker can't guess it (RFC 5452).
          loop { break unless (@id = Random.urandom(2).unpack1("n")) == except }
          message = DNS::Message.new(@id, flags, edns)
          message.questions << question
          @bytes = message.encode.freeze
          freeze
        end

        def edns? = !@edns.nil?

        # Can EDNS be omitted, because the query does not ask for DNSSEC records?
        def edns_optional? = edns? && !@edns.dnssec

        # @return [Query] the same question, for a server that does not support EDNS
        def without_edns
          self.class.new(@question, except: @except, flags: @flags, edns: nil, max_answers: @max_answers)
        end

        # @return [Array<Query>] one question for each type, with different ids
        def self.each_type(name, types)
          types.each_with_object([]) do |type, made|
            made << new(DNS::Question.of(name, type), except: made.last&.id, max_answers: MAX_ADDRESSES)
          end
        end
      end
    end
  end
end
