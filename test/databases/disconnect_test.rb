# frozen_string_literal: true

# test: one version

require_relative "support/database_programs"

# A client that leaves abandons its request's query, where cancel_on_disconnect says so.
class DisconnectTest < Minitest::Test
  include DatabasePrograms

  # The promise is 0.1 s and 0.5 s; the abandoned query takes 10 s. Other tests run at the same time.
  SECONDS = 10

  DatabasePrograms.each_access(self, "a_client_that_leaves_frees_its_connection_and_the_server") do |library, driver|
    seen = database_program("disconnect_program", library, driver, limit: 1)

    assert_equal %w[http1 http2], seen.keys
    seen.each do |way, result|
      assert_equal "42", result["answer"], way
      assert_operator result["next"], :<, SECONDS, "#{way}: the next request"
      assert_operator result["gone"], :<, SECONDS, "#{way}: the abandoned query on the server"
    end
  end
end
