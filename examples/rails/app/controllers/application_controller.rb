# frozen_string_literal: true

# All controllers inherit from it.
class ApplicationController < ActionController::Base
  before_action { Current.request_id = request.request_id }
end
