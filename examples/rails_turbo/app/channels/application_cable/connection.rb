# frozen_string_literal: true

module ApplicationCable
  # A visitor's connection. Anybody may connect.
  class Connection < ActionCable::Connection::Base
  end
end
