package serve

import (
	"fmt"
	"net/http"
)

type modelJSON struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Context int    `json:"max_model_len"`
}

func (s *Server) model() modelJSON {
	return modelJSON{s.opt.Model, "model", s.began.Unix(), "restar", s.room()}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, struct {
		Object string      `json:"object"`
		Data   []modelJSON `json:"data"`
	}{"list", []modelJSON{s.model()}})
}

func (s *Server) oneModel(w http.ResponseWriter, r *http.Request) error {
	if err := s.checkModel(r.PathValue("id")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.model())
}

func (s *Server) checkModel(name string) error {
	if name == "" {
		return badRequest("model", "model is missing, use %q", s.opt.Model)
	}
	if name != s.opt.Model {
		return &apiError{status: http.StatusNotFound, message: fmt.Sprintf("the model %q is not served here, use %q", name, s.opt.Model), param: "model", code: "model_not_found"}
	}
	return nil
}
