# frozen_string_literal: true

# Requests that are slow because of what the model does.
class ShopsController < ActionController::Base
  def show
    name = params[:name]
    return self.response_body = Download.new if name == "download"

    render plain: Shop.new.public_send(name).to_s
  end
end
