# frozen_string_literal: true

require "test_helper"
require "heddle/rack/permessage_deflate"

# Offers of permessage-deflate (RFC 7692, section 7.1): which are accepted and which declined.
class PermessageDeflateTest < Minitest::Test
  ANSWER = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

  def answer_to(field) = Heddle::Rack::PermessageDeflate.answer_to(field)

  def test_offers_of_browsers_and_libraries_are_accepted
    ["permessage-deflate", "permessage-deflate; client_max_window_bits", "Permessage-Deflate;client_max_window_bits=10",
     'permessage-deflate; client_max_window_bits="15"', "permessage-deflate; server_no_context_takeover",
     "permessage-deflate ; client_no_context_takeover ; server_no_context_takeover",
     "x-webkit-deflate-frame, permessage-deflate"].each { |field| assert_equal ANSWER, answer_to(field), field }
  end

  def test_the_whole_window_is_confirmed
    assert_equal "#{ANSWER}; server_max_window_bits=15", answer_to("permessage-deflate; server_max_window_bits=15")
  end

  def test_an_offer_that_wants_the_servers_window_smaller_is_declined_for_the_next_one
    assert_nil answer_to("permessage-deflate; server_max_window_bits=9")
    assert_equal ANSWER, answer_to("permessage-deflate; server_max_window_bits=9, permessage-deflate")
  end

  def test_unknown_repeated_and_malformed_parameters_are_declined
    ["; x=1", "; client_max_window_bits=16", "; client_max_window_bits=7", "; client_max_window_bits=08",
     "; client_max_window_bits=", "; server_max_window_bits", "; server_no_context_takeover=1", ";",
     "; client_no_context_takeover; client_no_context_takeover", "; client_max_window_bits; client_max_window_bits=9",
     '; client_max_window_bits="9', " client_max_window_bits"].each do |parameters|
      assert_nil answer_to("permessage-deflate#{parameters}"), parameters
    end
  end

  def test_other_extensions_and_none_are_declined
    [nil, "", ",", ";", "permessage-bzip2", "mux, x"].each { |field| assert_nil answer_to(field) }
  end

  def test_no_more_than_sixteen_offers_are_read
    assert_equal ANSWER, answer_to("#{"x," * 15}permessage-deflate")
    assert_nil answer_to("#{"x," * 16}permessage-deflate")
  end
end
