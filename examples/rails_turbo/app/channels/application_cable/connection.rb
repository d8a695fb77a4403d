# frozen_string_literal: true

module ApplicationCable
  # Who is there: anybody.
  class Connection < ActionCable::Connection::Base
  end
end
