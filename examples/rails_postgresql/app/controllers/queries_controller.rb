# frozen_string_literal: true

# Queries that take a while, as those of a busy database do.
class QueriesController < ApplicationController
  # A query, and a connection for as long as it takes.
  def slow
    ApplicationRecord.with_connection { |connection| connection.execute("SELECT pg_sleep(#{seconds})") }
    render plain: "slept #{seconds}\n"
  end

  # A transaction, in which the request waits for something else while it keeps its connection.
  def held
    ApplicationRecord.transaction do
      ApplicationRecord.lease_connection.execute("SELECT 1")
      sleep seconds
    end
    render plain: "held #{seconds}\n"
  end

  private

  def seconds = params.fetch(:seconds, 0.1).to_f.clamp(0, 10)
end
